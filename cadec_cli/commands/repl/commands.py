"""The REPL's commands: a table of their names, arguments and functions.

To add a command, write a function and enter it in COMMANDS.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cadec_cli.commands.repl import views
from cadec_cli.commands.repl.lines import Command, Quit, Repl
from cadec_cli.commands.repl.views import count_noun
from cadec_cli.decoding.glossary.outcomes import term_outcomes
from cadec_cli.errors import CadecError, as_flags
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.paths import expand_user, resolve_path
from cadec_cli.jobs.found_names import table
from cadec_cli.jobs.outputs import check_outputs
from cadec_cli.method import objectives
from cadec_cli.method.options import AUTO, TranslationOptions, with_flags
from cadec_cli.session.files import read_session, write_session
from cadec_cli.session.session import Entry, Session
from cadec_cli.terminal import console
from cadec_cli.terminal.flags import fill_lists, names_of
from cadec_cli.text.documents import document_lines
from cadec_cli.text.formats import TextFile, read_text_file
from cadec_cli.text.formats.layout import one_line
from cadec_cli.text.glossary.reader import is_written_out, read_glossary

# The options of a translation as `/set` names, shows and reads them.


# The temperature is T, as in the formula.
_SHORT = {"temperature": "T"}
_FIELDS = {
    _SHORT.get(item.name, item.name.replace("_", "-")): item
    for item in dataclasses.fields(TranslationOptions)
}
NAMES = tuple(_FIELDS)
# The possible values of options that have a list of them.
VALUES: dict[str, tuple[str, ...]] = {
    name: ("on", "off") if item.metadata["type"] is bool else names_of(item.metadata["choices"])
    for name, item in _FIELDS.items()
    if item.metadata["type"] is bool or item.metadata["choices"]
}


def rows(options: TranslationOptions) -> list[tuple[str, str, str]]:
    """Name, value and meaning of every option."""
    return [
        (
            name,
            _format_value(getattr(options, item.name), name, options),
            fill_lists(as_flags(item.metadata["help"])),
        )
        for name, item in _FIELDS.items()
    ]


def with_option(options: TranslationOptions, name: str, value: str) -> TranslationOptions:
    """Return the options with one of them set; an unknown name or an invalid value is a CadecError."""
    known = {own.lower(): own for own in NAMES} | _SHORT
    own = known.get(name.lower().replace("_", "-"))
    if own is None:
        near = difflib.get_close_matches(name.lower(), known, 1)
        meant = f"did you mean {known[near[0]]}? " if near else ""
        raise CadecError(f"no option {name!r}", f"{meant}there are {', '.join(NAMES)}")
    item = _FIELDS[own]
    if item.name == "weight" and value.lower() == "default":
        return dataclasses.replace(options, weight={})
    if item.name == "term":
        if value.lower() == "default":
            return dataclasses.replace(options, term={})
        return with_flags(options, {"term": [value]})
    if item.name in ("cast", "about"):
        return with_flags(options, {item.name: "" if value.lower() == "off" else value})
    if item.name == "glossary":
        return dataclasses.replace(options, glossary=() if value.lower() == "off" else (value,))
    if item.name == "memory":
        if value.lower() == "off":
            return dataclasses.replace(options, memory=())
        return with_flags(options, {"memory": (str(expand_user(Path(value))),)})
    return with_flags(options, {item.name: _read(own, item, value)})


def _read(name: str, item: dataclasses.Field[Any], value: str) -> Any:
    kind = item.metadata["type"]
    if kind is bool:
        if value.lower() not in ("on", "off"):
            raise CadecError(f"{name} is on or off, not {value!r}")
        return value.lower() == "on"
    if name in VALUES and value not in VALUES[name]:
        near = difflib.get_close_matches(value, VALUES[name], 1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise CadecError(f"{name} is one of {', '.join(VALUES[name])}, not {value!r}", hint)
    try:
        read = kind(value)
    except ValueError:
        read = None
    if read is None or (kind is float and not math.isfinite(read)):
        wanted = {int: "a whole number", float: "a number"}[kind]
        raise CadecError(f"{name} needs {wanted}, not {value!r}")
    return read


def _format_value(value: Any, name: str, options: TranslationOptions) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == "weight":
        used = dict(options.weighted_objective.weights)
        if options.glossary:
            used[objectives.GLOSSARY] = options.glossary_weight
        if options.finds_names:
            used[objectives.NAMES] = options.names_weight
        if options.asks_for_manner:
            used[objectives.MANNER] = options.manner_weight
        weights = ", ".join(f"{key}={number:g}" for key, number in used.items())
        return weights if value and weights else f"{weights or 'none'} (default)"
    if name == "glossary":
        return ", ".join(map(_glossary_name, value)) or "none"
    if name == "memory":
        return ", ".join(value) or "none"
    if name == "term":
        return ", ".join(f"{key}={text}" for key, text in value.items()) or "none"
    if name in ("cast", "about"):
        return value or "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _glossary_name(source: str) -> str:
    """The name of a glossary's file, or its term if it was typed."""
    return " = ".join(source.strip().split("\t")) if is_written_out(source) else source


NBEST_ROWS = 10
FORCE = " --force"  # after the name of a file that may be replaced


def context(repl: Repl, rest: str) -> None:
    """Show the document so far."""
    entries = repl.session.current
    count = _number("context", rest) if rest else len(entries)
    if not entries:
        console.note("the document is still empty")
        return
    in_use = len(repl.session.in_use.own)
    first = max(0, len(entries) - count)
    repl.output.show(*views.document(entries, first, len(repl.session.documents), in_use))


def nbest(repl: Repl, rest: str) -> None:
    """Show the hypotheses of a sentence."""
    number, most = _split_number(rest)
    entry = repl.session.sentence(number)
    count = min(_number("nbest", most) if most else NBEST_ROWS, len(entry.last_part.hypotheses))
    alone = repl.session.sentence_level(entry)[-1].hypotheses
    repl.output.show(*views.hypotheses(entry, count, alone[0].text if alone else None))


def pick(repl: Repl, rest: str) -> None:
    """Take another hypothesis."""
    first, _, second = rest.partition(" ")
    number = _number("pick", first.removeprefix("#")) if second or first.startswith("#") else None
    entry = repl.session.pick(_number("pick", second.strip() if number else rest), number)
    repl.save()
    repl.show(entry)
    _say_what_follows(repl)


def edit(repl: Repl, rest: str) -> None:
    """Replace a translation by the user's own text."""
    number, text = _split_number(rest)
    if not text:
        before = repl.session.sentence(number).text
        if repl.ask is None:
            raise CadecError("/edit needs the text", "as in: /edit TEXT, or /edit #2 TEXT")
        asked = repl.ask(before)
        if asked is None or asked == before:
            console.note("nothing was changed")
            return
        text = asked
    entry = repl.session.edit(text, number)
    repl.save()
    repl.output.translation(entry.text)
    _say_what_follows(repl)


def redo(repl: Repl, rest: str) -> None:
    """Choose again for all sentences after a given one."""
    number = repl.session.changed if not rest else _number("redo", rest.removeprefix("#"), least=0)
    if number is None:
        raise CadecError(
            "no sentence was changed since", "/redo N chooses again after sentence N, /redo 0 for all"
        )
    changes = repl.session.redo(number)
    repl.save()
    if changes:
        repl.output.show(views.changes(changes))
    chosen = sum(not entry.is_user_choice for entry in repl.session.current[number:])
    if chosen:
        console.note(f"{len(changes)} of {count_noun(chosen, 'sentence')} changed")
    else:
        console.note("no later sentence can be chosen again")


def _say_what_follows(repl: Repl) -> None:
    following = len(repl.session.current) - (repl.session.changed or 0)
    if following:
        console.note(f"/redo chooses again for what follows: {count_noun(following, 'sentence')}")


def formal(repl: Repl, rest: str) -> None:
    """Address people formally."""
    _no_argument("formal", rest)
    _address(repl, "formal")


def informal(repl: Repl, rest: str) -> None:
    """Address people informally."""
    _no_argument("informal", rest)
    _address(repl, "informal")


def auto(repl: Repl, rest: str) -> None:
    """Address people as the context suggests."""
    _no_argument("auto", rest)
    _address(repl, AUTO)


def _address(repl: Repl, formality: str) -> None:
    """Set the formality; with the beam, also a temperature at which it has an effect."""
    before = repl.session.options
    flags: dict[str, Any] = {"formality": formality}
    if formality == AUTO and repl.unheard is not None:
        flags["temperature"] = repl.unheard
    repl.session.configure(with_flags(before, flags))
    lowered = repl.session.options.temperature != before.temperature
    if AUTO in (formality, before.formality):
        repl.unheard = before.temperature if formality != AUTO and lowered else None
    repl.save()
    said = "as the context suggests" if formality == AUTO else formality
    at = f", at T {repl.session.options.temperature:g}" if lowered else ""
    console.note(f"address is {said} from the next sentence on{at}; /redo 0 chooses again for all")


def glossary(repl: Repl, rest: str) -> None:
    """Show the terms of the last sentence, or use one more glossary."""
    session = repl.session
    used = session.options.glossary
    if not rest:
        if not used:
            console.note("there is no glossary; /glossary FILE uses one")
            return
        console.note(f"glossary: {', '.join(map(_glossary_name, used))}")
        outcomes = term_outcomes(session.last.parts) if session.current else ()
        repl.output.show(views.terms(outcomes))
        return
    if rest.lower() == "off":
        session.configure(dataclasses.replace(session.options, glossary=()))
    else:
        term, equals, target = rest.partition(" = ")
        source = f"{term}\t{target}\n" if equals else str(_file("glossary", rest))
        session.configure(dataclasses.replace(session.options, glossary=(*used, source)))
    repl.save()
    count = len(read_glossary(session.options.glossary, session.language)) if session.options.glossary else 0
    console.note(f"{count_noun(count, 'term')} from the next sentence on; /redo 0 chooses again for all")


def terms(repl: Repl, rest: str) -> None:
    """Show the names that were found, or write them as a glossary."""
    if not repl.session.options.finds_names:
        console.note("names are not looked for; /set names on does, with a search that chooses from lists")
        return
    uses = repl.session.name_uses()
    if rest:
        name = f" {rest}".removesuffix(FORCE).strip()
        path = _file("terms", name)
        check_outputs([path], force=name != rest, hint=f"/terms {name}{FORCE} replaces it")
        with atomic_file(path, private=True) as stream:
            stream.write(table(uses).encode("utf-8", "replace"))
        console.note(f"wrote {count_noun(len(uses), 'name')} to {path}; /glossary {name} uses it")
    elif uses:
        repl.output.show(views.found_names(uses))
    else:
        console.note("no name has come up twice")


def why(repl: Repl, rest: str) -> None:
    """Explain the last translation."""
    _no_argument("why", rest)
    repl.output.show(*views.explanation(repl.session.explain()))


def undo(repl: Repl, rest: str) -> None:
    """Remove the last sentence."""
    _no_argument("undo", rest)
    removed = repl.session.undo()
    repl.save()
    console.note("back in the previous document" if removed is None else f"removed: {_short(removed)}")


def new(repl: Repl, rest: str) -> None:
    """Begin a document."""
    _no_argument("new", rest)
    repl.session.new()
    repl.save()
    console.note(f"document {len(repl.session.documents)}")


def set_option(repl: Repl, rest: str) -> None:
    """Show or change options."""
    if not rest:
        repl.output.show(views.settings(rows(repl.session.options)))
        return
    name, _, value = rest.partition(" ")
    if not value.strip():
        raise CadecError(f"/set {name} needs a value", "as in: /set T 4; /set alone shows all")
    options = with_option(repl.session.options, name, value.strip())
    if name.lower() == "formality":
        _address(repl, options.formality)
        return
    repl.session.configure(options)
    repl.save()
    console.note(f"{name} is {value.strip()} from the next sentence on")


def compare(repl: Repl, rest: str) -> None:
    """Show the sentence level too, or not."""
    if rest not in ("on", "off"):
        raise CadecError(f"/compare is on or off, not {rest!r}" if rest else "/compare on, or /compare off")
    repl.comparing = rest == "on"


def save(repl: Repl, rest: str) -> None:
    """Write the session, or its translations."""
    name = f" {rest}".removesuffix(FORCE).strip()
    path = _file("save", name)
    own = resolve_path(path) in repl.written
    check_outputs([path], force=own or name != rest, hint=f"/save {name}{FORCE} replaces it")
    if path.suffix.lower() == ".txt":
        documents = ((one_line(entry.text) for entry in document) for document in repl.session.documents)
        with atomic_file(path, private=True) as stream:  # as the session is
            stream.writelines(line.encode() for line in document_lines(documents))
    else:
        write_session(path, repl.session)
    repl.written.add(resolve_path(path))
    console.note(f"saved {_session_size(repl.session)} to {path}")


def load(repl: Repl, rest: str) -> None:
    """Continue a saved session."""
    path = _file("load", rest)
    session = repl.session
    stored = read_session(path, session.direction, session.models.reader, session.options)
    repl.autosave.finish(session)  # the last state of the replaced session is kept
    if stored.options is not None:
        session.configure(stored.options)
    session.begin(stored.documents, stored.after)
    repl.autosave.begin_anew()
    repl.save()
    repl.written.add(resolve_path(path))
    if stored.damage:
        console.warn(stored.damage)
    other = "" if stored.options is not None else ", source and target only"
    console.note(f"loaded {_session_size(session)} from {path}{other}")


def open_file(repl: Repl, rest: str) -> None:
    """Translate a file."""
    path = _file("open", rest)
    if str(path) == "-":
        raise CadecError("/open needs a file name; it can't read standard input")
    file = read_text_file(path, language=repl.session.language, encoding=repl.encoding, most=repl.max_input)
    total = sum(map(len, file.documents))
    if not total:
        raise CadecError(f"{path} has no sentences")
    for _ in console.track(_translate_file(repl.session, file), "translate", total=total, unit="sentences"):
        repl.save(at_once=False)
    console.note(f"opened {path}: {count_noun(total, 'sentence')}; your next sentence continues it")


def _translate_file(session: Session, file: TextFile) -> Iterator[Entry]:
    """Translate a file's documents as documents of the session; the last stays the current one."""
    for document in file.documents:
        session.new()
        texts = [text.encode("utf-8", "replace").decode() for text in document.texts]
        yield from session.translate(texts, speakers=document.speakers)


def show_help(repl: Repl, rest: str) -> None:
    """List the commands."""
    _no_argument("help", rest)
    rows = [(command.usage, command.help) for command in COMMANDS.values()]
    repl.output.show(views.help_table([*rows, ("//text", "a sentence that begins with a slash")]))


def leave(repl: Repl, rest: str) -> None:
    """End the session."""
    _no_argument("quit", rest)
    raise Quit


COMMANDS = {
    command.name: command
    for command in (
        Command("/context [n]", "the document so far, or its last n sentences: source and target", context),
        Command(
            "/nbest [#N] [n]",
            f"the n best hypotheses (n = {NBEST_ROWS}) of the last sentence, or of sentence N of /context",
            nbest,
        ),
        Command("/pick [#N] k", "take hypothesis k of the last sentence, or of sentence N", pick),
        Command("/edit [#N] [text]", "correct the last translation, or that of sentence N, by hand", edit),
        Command("/redo [N]", "choose again after the sentence just changed, or after sentence N", redo),
        Command("/why", "what the context does to the last translation, token by token", why),
        Command("/undo", "remove the last sentence", undo),
        Command("/new", "begin a new document", new),
        Command(
            "/set [name value]",
            "show or change options: T, beam, nbest, context, search, objective …",
            set_option,
        ),
        Command("/formal", "address people formally from the next sentence on", formal),
        Command("/informal", "address people informally", informal),
        Command("/auto", "address people as the context suggests", auto),
        Command(
            "/glossary [FILE|TERM = TRANSLATION|off]",
            "use a glossary, or one more term; alone: what became of the last sentence's terms",
            glossary,
            takes_file=True,
        ),
        Command(
            "/terms [FILE]",
            "names that came up twice and what they are called (/set names on); or write them as a glossary",
            terms,
            takes_file=True,
        ),
        Command("/compare on|off", "show the sentence level beside every translation", compare),
        Command(
            "/save FILE [--force]",
            "write the session, or to FILE.txt only its translations; --force replaces any existing file",
            save,
            takes_file=True,
        ),
        Command("/load FILE", "continue a saved session", load, takes_file=True),
        Command(
            "/open FILE", "translate a text or subtitle file, and continue it", open_file, takes_file=True
        ),
        Command("/help", "this", show_help),
        Command("/quit", "leave; so does Ctrl-D", leave),
    )
}


def _no_argument(name: str, rest: str) -> None:
    if rest:
        raise CadecError(f"/{name} takes no argument (got {rest!r})")


def _number(name: str, rest: str, least: int = 1) -> int:
    try:
        number = int(rest)
    except ValueError:
        number = least - 1
    if number < least:
        raise CadecError(f"/{name} needs a number from {least}" + (f", not {rest!r}" if rest else ""))
    return number


def _split_number(rest: str) -> tuple[int | None, str]:
    """Split `#3 text` into the number of a sentence, None if it is missing, and the text."""
    found = re.match(r"#([1-9]\d*)(?:\s+|$)", rest)
    return (int(found[1]), rest[found.end() :]) if found else (None, rest)


def _file(name: str, rest: str) -> Path:
    if not rest:
        raise CadecError(f"/{name} needs a file", f"as in: /{name} FILE")
    if "\0" in rest:
        raise CadecError(f"invalid file name: {rest!r}")
    return expand_user(rest)


def _short(entry: Entry) -> str:
    return entry.source if len(entry.source) <= 60 else f"{entry.source[:59]}…"


def _session_size(session: Session) -> str:
    sentences = sum(map(len, session.documents))
    return f"{count_noun(sentences, 'sentence')} in {count_noun(len(session.documents), 'document')}"
