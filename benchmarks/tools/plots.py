"""Curves as pictures.

Both axes are logarithmic: a cost in proportion is a straight line of slope 1. A share in percent is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.tools.figures import Curve

SIZE_INCHES = (6.4, 4.0)


def plot(curve: Curve, path: Path) -> None:
    """Write `curve` as SVG, byte by byte the same for the same figures."""
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    for name, points in curve.series.items():
        axes.plot(*zip(*points, strict=True), marker="." if curve.is_share else "o", label=name)
    x_scale = "linear" if curve.is_share else "log"
    axes.set(title=curve.what, xlabel=curve.x, ylabel=curve.y, xscale=x_scale, yscale="log")
    axes.grid(visible=True, which="major", alpha=0.3)
    axes.legend()
    with mpl.rc_context({"svg.hashsalt": "sparkherd"}):
        figure.savefig(path, metadata={"Date": None})
