"""The curves of a run as a picture."""

from pathlib import Path

from cadec_cli.plotting import require_matplotlib, save_figure
from cadec_cli.training.metrics import read_metrics


def plot_curves(metrics: Path, output: Path) -> None:
    """Draw training loss, dev loss and, if there is one, dev BLEU over the updates, as a PNG."""
    require_matplotlib()
    from matplotlib.figure import Figure

    records = list(read_metrics(metrics))
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    training = [(record["update"], record["loss"]) for record in records if "loss" in record]
    dev = [(record["update"], record["dev_loss"]) for record in records if "dev_loss" in record]
    bleu = [(record["update"], record["dev_bleu"]) for record in records if "dev_bleu" in record]
    if training:
        axes.plot(*zip(*training, strict=True), color="#9ecae1", linewidth=0.8, label="training loss")
    if dev:
        axes.plot(*zip(*dev, strict=True), color="#08519c", marker="o", markersize=3, label="dev loss")
    axes.set_xlabel("update")
    axes.set_ylabel("−log p per token")
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    if bleu:
        right = axes.twinx()
        right.plot(*zip(*bleu, strict=True), color="#d94801", marker="s", markersize=3, label="dev BLEU")
        right.set_ylabel("BLEU")
        more_handles, more_labels = right.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    axes.legend(handles, labels, frameon=False)
    save_figure(figure, output)
