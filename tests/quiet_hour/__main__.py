"""`python -m tests.quiet_hour`: an hour of what is ordinary, in which nobody is told of anything."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.quiet_hour.run import run


def main() -> int:
    """Returns 0 if nothing rang, somebody was told of a task that failed after it, and no row is wrong."""
    parser = argparse.ArgumentParser(prog="make quiet-hour")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long it takes")
    parser.add_argument("--seed", type=int, default=1, help="of what is chosen by chance")
    parser.add_argument("--folder", type=Path, help="where to leave logs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.folder or Path(scratch) / "run").absolute()
        folder.mkdir(parents=True)
        outcome = run(folder, options.minutes * 60, options.seed, partial(print, flush=True))
    sys.stdout.write(
        f"{outcome.seconds:.0f} s, {outcome.acts} ordinary acts, {outcome.rows:,} rows\n"
        f"told: {len(outcome.told)}, remembered: {len(outcome.remembered)}, "
        f"after a task had failed: {[each['rule'] for each in outcome.told_in_the_end]}, "
        f"rows lost or twice: {outcome.faults or 0}\n"
    )
    return int(not outcome.is_right)


if __name__ == "__main__":
    sys.exit(main())
