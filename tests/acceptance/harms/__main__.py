"""`python -m tests.acceptance.harms`: what one harmful task does to a herd."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.acceptance.harms.catalogue import HARMS
from tests.acceptance.harms.report import is_right, told
from tests.acceptance.harms.run import trial
from tests.integration.postgres import running


def main() -> int:
    """Returns 0 if no neighbour has lost anything, and the harmful task stays as it should."""
    parser = argparse.ArgumentParser(prog="make harms")
    parser.add_argument("--harm", choices=HARMS, action="append", help="which; repeatable; all without it")
    parser.add_argument("--isolate", action="store_true", help="a JVM for each task")
    parser.add_argument("--good", type=int, default=4, help="well-behaved tasks beside it")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to look on at each step")
    parser.add_argument("--patience", type=float, default=1.0, help="times as long as on a quiet machine")
    parser.add_argument("--folder", type=Path, help="where to leave logs and databases")
    options = parser.parse_args()
    are_right = []
    for name in options.harm or HARMS:
        with tempfile.TemporaryDirectory() as scratch, running() as postgres:
            folder = (options.folder or Path(scratch)).absolute() / name
            folder.mkdir(parents=True)
            outcome = trial(
                folder,
                postgres.url,
                name,
                isolate=options.isolate,
                good=options.good,
                seconds=options.seconds,
                patience=options.patience,
            )
        sys.stdout.write(f"{told(outcome)}\n")
        sys.stdout.flush()
        are_right.append(is_right(outcome))
    return int(not all(are_right))


if __name__ == "__main__":
    sys.exit(main())
