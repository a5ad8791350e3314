"""The table as bars, if matplotlib is there."""

from __future__ import annotations

from pathlib import Path

from bench.peers.protocol import Durability

COLOURS = ("#20639b", "#f2a541", "#6a9f58")


def draw(bars: dict[Durability, dict[str, list[tuple[str, float]]]], picture: Path) -> bool:
    """Draw one panel per durability class; return False, and leave no picture, without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        picture.unlink(missing_ok=True)  # one of an earlier run would contradict the table
        return False
    matplotlib.use("svg")
    # Text stays text and ids stay the same, so that the file is small and a new run changes only what differs.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "peers", "font.size": 9})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(bars), figsize=(10, 3.8), sharey=True, layout="constrained")
    names = list(dict.fromkeys(name for ways in bars.values() for found in ways.values() for name, _ in found))
    for panel, (durability, ways) in zip(panels, bars.items(), strict=True):
        height = 0.8 / len(ways)
        for number, (how, found) in enumerate(ways.items()):
            rows = [names.index(name) + (number - (len(ways) - 1) / 2) * height for name, _ in found]
            lengths = [value - 1 for _, value in found]  # a bar begins at telha-queue, to the left where it is slower
            panel.barh(rows, lengths, height, left=1, label=how, color=COLOURS[number % len(COLOURS)])
        panel.set(xscale="log", title=f"durability {durability}", xlabel="time per job, telha-queue = 1")
        panel.axvline(1, color="black", linewidth=0.8)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_yticks(range(len(names)), names)
        panel.legend(fontsize=8)
    panels[0].invert_yaxis()
    figure.savefig(picture, metadata={"Date": None})
    return True
