"""The tables as Markdown, JSON, and one HTML page that needs nothing but itself."""

from __future__ import annotations

import base64
import html
import json
from pathlib import Path

from cadec_cli.reproduction.places import ExperimentPaths
from cadec_cli.reproduction.results import Results
from cadec_cli.reproduction.tables import PlainTable, settings_line, tables
from cadec_cli.whole_files import atomic_file

_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; color: #222; }
table { border-collapse: collapse; margin: .6em 0; }
th, td { padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #888; }
p.note { color: #666; font-size: 13px; margin-top: 0; }
.scroll { overflow-x: auto; }
img { max-width: 100%; }
"""


def write_reports(places: ExperimentPaths, results: Results) -> list[Path]:
    """Write report.md, report.json and report.html into the working directory."""
    contents = {
        "report.md": markdown(results),
        "report.json": json.dumps(results.record(), ensure_ascii=False, indent=2) + "\n",
        "report.html": page(results),
    }
    for name, content in contents.items():
        with atomic_file(places.work / name) as stream:
            stream.write(content.encode())
    return [places.work / name for name in contents]


def markdown(results: Results) -> str:
    """All tables as Markdown."""
    parts = [f"# Reproduction, {results.scale} scale, {results.date}", settings_line(results)]
    for table in tables(results):
        lines = [f"## {table.title}", "", _line(table.headings)]
        lines.append(_line(["---", *["---:"] * (len(table.headings) - 1)]))
        lines += [_line(row) for row in table.rows]
        parts.append("\n".join(lines))
        if table.note:
            parts.append(table.note[0].upper() + table.note[1:] + ".")
    return "\n\n".join(parts) + "\n"


def page(results: Results) -> str:
    """All tables and the figure as one HTML page."""
    title = f"cadec: reproduction, {results.scale} scale"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{results.date}. {html.escape(settings_line(results))}</p>",
    ]
    parts += [_html_table(table) for table in tables(results)]
    if results.figure is not None:
        picture = base64.b64encode(results.figure.read_bytes()).decode()
        parts.append(
            "<h2>PMI of sources and of translations</h2>\n"
            f'<img alt="Scatter plots of PMI" src="data:image/png;base64,{picture}">'
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _html_table(table: PlainTable) -> str:
    head = "".join(f"<th>{html.escape(one)}</th>" for one in table.headings)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    note = f'\n<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    return (
        f'<h2>{html.escape(table.title)}</h2>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>{note}"
    )
