"""`python -m tests.acceptance.chaos`: the chaos run by hand, as long as one likes."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.acceptance.chaos.balance import Balance
from tests.acceptance.chaos.plan import Into, Source
from tests.acceptance.chaos.run import run
from tests.integration.postgres import running


def main() -> int:
    """Returns 0 if nothing was lost and nothing twice; with `--unfenced`, if something was."""
    parser = argparse.ArgumentParser(prog="make chaos")
    parser.add_argument(
        "--rounds", type=int, default=20, help="how many are drawn; two more come in any case"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--source", type=Source, choices=Source, metavar="files|kafka", default=Source.FILES,
        help="what the tasks read; a Kafka broker is struck, too",
    )  # fmt: skip
    parser.add_argument(
        "--into", type=Into, choices=Into, metavar="sql|delta|iceberg", default=Into.SQL,
        help="what they write into; with a lake, strikes are aimed at its commits, too",
    )  # fmt: skip
    parser.add_argument(
        "--unfenced", action="store_true",
        help="the control run: the sink lets everybody write; a lake's is Spark's own",
    )  # fmt: skip
    parser.add_argument(
        "--bad-rows", action="store_true",
        help="some rows are bad, and are put aside or dropped; not with iceberg",
    )  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where to leave logs, files and the SQLite database")
    options = parser.parse_args()
    if options.bad_rows and (
        options.into is Into.ICEBERG or (options.into is Into.DELTA and options.unfenced)
    ):
        parser.error("bad rows go into sql, or into delta with its fence")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or Path(scratch) / "run"
        folder.mkdir(parents=True)
        with running() as postgres:
            report = run(
                folder.absolute(),
                postgres.url,
                rounds=options.rounds,
                seed=options.seed,
                source=options.source,
                into=options.into,
                fenced=not options.unfenced,
                bad_rows=options.bad_rows,
            )
    is_right = report.total == Balance() and not report.faults
    return int(is_right is options.unfenced)


if __name__ == "__main__":
    sys.exit(main())
