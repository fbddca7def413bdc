"""`python -m tests.soak`: twenty tasks of all kinds for an hour, and what has grown meanwhile."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.soak.report import draw, is_right, pairs, told
from tests.soak.run import run


def main() -> int:
    """Returns 0 if memory is flat, nothing is left behind, and every row is where it belongs, once."""
    parser = argparse.ArgumentParser(prog="make soak")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long it takes")
    parser.add_argument("--folder", type=Path, help="where to leave logs and figures")
    parser.add_argument("--plot", type=Path, help="an SVG file to draw the figures into")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path(scratch) / "run").absolute()
        folder.mkdir(parents=True)
        outcome = run(folder, options.minutes * 60, partial(print, flush=True))
        (folder / "figures.csv").write_text(
            "\n".join(["figure,seconds,value", *pairs(outcome.series)]) + "\n"
        )
    sys.stdout.write(f"{told(outcome)}\n")
    if options.plot:
        draw(outcome.series, options.plot)
    return int(not is_right(outcome))


if __name__ == "__main__":
    sys.exit(main())
