"""Prints goal, measured value and verdict of each benchmark; README.md beside this file tells more."""

from __future__ import annotations

import argparse
import importlib
import logging
import signal
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from benchmarks.tools.figures import Curve, ResultLine, attempted
from benchmarks.tools.machine import machine
from benchmarks.tools.report import RESULTS, Report, ReportSection, read_report

if TYPE_CHECKING:
    from collections.abc import Iterator

QUICK = ("startup", "heartbeats", "join_sync", "cost", "rebalancing", "failover", "events", "sticky", "size")
SLOW = (
    "anatomy",
    "kafka",
    "kafka_failover",
    "zookeeper",
    "etcd",
    "takeover",
    "postgres",
    "rows",
    "bad_rows",
    "task_costs",
    "spark_tasks",
    "isolation",
    "gap",
    "gap_connect",
    "kafka_rows",
    "lakehouse",
    "lake_growth",
)
TERMINATED = 128 + signal.SIGTERM
LIMIT_S = 2700
"""For one benchmark; the longest, `kafka_rows`, takes half an hour, the others a few minutes."""


class LateExit(SystemExit):
    """Time is up; event loops let no other kind of error of a signal's through."""


def main() -> int:
    """Run what was asked for; the exit code says whether every goal of it is met."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # what was started is ended, too
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    names = options.only or (QUICK if options.quick else QUICK + SLOW)
    report = _report(options)
    for name in names:
        report.sections[name] = section = ReportSection()
        for result in attempted(name, partial(_results, name, quick=options.quick)):
            section.add(result)
            if isinstance(result, ResultLine):
                print(result, flush=True)
            _write(report, options)
    return 0 if all(line.good for name in names for line in report.sections[name].lines) else 1


def _report(options: argparse.Namespace) -> Report:
    """Empty, or what the documentation has so far: what is not run now stays there."""
    return (
        read_report(options.docs / "benchmarks" / RESULTS, machine()) if options.docs else Report(machine())
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only what takes minutes, at small sizes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there, too")
    parser.add_argument(
        "--docs", type=Path, metavar="DIR", help="write benchmarks.md and the plots there, too"
    )
    parser.add_argument("--only", metavar="NAME", choices=QUICK + SLOW, nargs="+", help="some of them")
    return parser.parse_args()


def _results(name: str, *, quick: bool) -> Iterator[ResultLine | Curve]:
    """What a benchmark finds within its time; its `quick()` if it has one and that is enough."""
    module = importlib.import_module(f"benchmarks.measures.{name}")
    with _limit(LIMIT_S):
        yield from (getattr(module, "quick", module.measure) if quick else module.measure)()


@contextmanager
def _limit(seconds: int) -> Iterator[None]:
    """What hangs fails, so that nobody has to watch."""

    def ring(*_: object) -> None:
        raise LateExit

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    except LateExit:
        raise TimeoutError(f"not over after {seconds} s") from None
    finally:
        signal.alarm(0)


def _write(report: Report, options: argparse.Namespace) -> None:
    """After every line: a run that is broken off has told what it found."""
    if options.json:
        report.write_json(options.json)
    if options.docs:
        report.write_docs(options.docs)


if __name__ == "__main__":
    sys.exit(main())
