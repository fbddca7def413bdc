"""Whatever is killed, frozen or cut off: rows in the sinks are the rows of the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.chaos.plan import ON_THE_BROKER, ON_THE_HERD, Moment, Source, Strike
from tests.acceptance.chaos.run import run
from tests.acceptance.chaos.sinks import Balance
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.chaos.report import Line, Report

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1800)]

SEED = 1
SEED_OF_BROKERS = 3
"""Draws each moment, and one worker that is killed with the broker; each costs the start of a JVM."""
ROUNDS = len(ON_THE_HERD)
"""Every strike on the herd once; `make chaos` plays as many as you like."""


@pytest.fixture
def postgres() -> Iterator[str]:
    """A real server for one of the two sinks."""
    with running() as server:
        yield server.url


def test_nothing_is_lost_and_nothing_twice(tmp_path: Path, postgres: str) -> None:
    """Every strike, SQLite and PostgreSQL; zombies tried to write, and were refused."""
    report = run(tmp_path, postgres, rounds=ROUNDS, seed=SEED)
    assert report.balance == {"sqlite": Balance(), "postgres": Balance()}
    assert len(report.lines) == ROUNDS + len(_held(report))
    fenced, ended = _held(report)
    assert fenced.by_fence > 0
    assert ended.by_fence + ended.by_lease > 0, "the next owner has ended its session"


@pytest.mark.connectors
def test_nothing_is_lost_and_nothing_twice_when_the_broker_is_struck(tmp_path: Path, postgres: str) -> None:
    """From Kafka: what is done to a broker, each once, and the rounds that show what the fence is for."""
    each_once = dict.fromkeys(ON_THE_BROKER, 1)
    report = run(
        tmp_path,
        postgres,
        rounds=len(each_once),
        seed=SEED_OF_BROKERS,
        source=Source.KAFKA,
        weights=each_once,
    )
    assert report.balance == {"sqlite": Balance(), "postgres": Balance()}
    assert {line.planned.strike for line in report.lines} == {*each_once, Strike.FREEZE}
    assert len(report.lines) == len(each_once) + len(_held(report))
    assert _held(report)[0].by_fence > 0


def test_without_the_fence_rows_are_written_twice(tmp_path: Path, postgres: str) -> None:
    """The control: what the last two rounds of every run do, with a sink that lets everybody write."""
    report = run(tmp_path, postgres, rounds=0, seed=SEED, fenced=False)
    assert [line.planned.database for line in _held(report)] == ["sqlite", "postgres"]
    assert all(report.balance[database].twice > 0 for database in ("sqlite", "postgres"))


def _held(report: Report) -> list[Line]:
    """The rounds in which a zombie gets to write whatever the timing: nothing but the fence refuses it."""
    return [line for line in report.lines if line.planned.moment is Moment.HELD]
