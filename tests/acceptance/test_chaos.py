"""Whatever is killed, frozen or cut off: rows in the sinks are the rows of the sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.chaos.balance import Balance
from tests.acceptance.chaos.plan import (
    AIMED,
    OF_REPLAYS,
    ON_THE_BROKER,
    ON_THE_HERD,
    STRIKES_AT_REPLAYS,
    Into,
    Moment,
    Source,
    Strike,
    script,
)
from tests.acceptance.chaos.put_aside import PUT_ASIDE
from tests.acceptance.chaos.run import run
from tests.integration.postgres import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.acceptance.chaos.report import Line, Report

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1800)]

SEED = 1
SEED_OF_BROKERS = 3
"""Draws each moment, and one worker that is killed with the broker; each costs the start of a JVM."""
SEED_OF_LAKES = 1
ON_A_COMMIT = [Strike.FREEZE, Strike.JVM, Strike.TWO_OWNERS, Strike.RESET]
ROUNDS = len(ON_THE_HERD)
"""Every strike on the herd once; `make chaos` plays as many as you like."""


@pytest.fixture
def postgres() -> Iterator[str]:
    """A real server for one of the two sinks."""
    with running() as server:
        yield server.url


def test_nothing_is_lost_and_nothing_twice(tmp_path: Path, postgres: str) -> None:
    """Every strike, SQLite and PostgreSQL; some rows are bad, and each of those is put aside once or dropped.

    Zombies tried to write, also when the bad rows were mended and played again, and were refused.
    """
    report = run(tmp_path, postgres, rounds=ROUNDS, seed=SEED, bad_rows=True)
    _require_each_in_its_place(report, "sqlite", "postgres")
    assert len(report.lines) == ROUNDS + len(_held(report)) + len(STRIKES_AT_REPLAYS[Into.SQL])
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
        drawn_from=script(Source.KAFKA)._replace(weights=each_once),
    )
    assert report.balance == {"sqlite": Balance(), "postgres": Balance()}
    assert {line.planned.strike for line in report.lines} == {*each_once, Strike.FREEZE}
    assert len(report.lines) == len(each_once) + len(_held(report))
    assert _held(report)[0].by_fence > 0


@pytest.mark.by_hand
def test_without_the_fence_rows_are_written_twice(tmp_path: Path, postgres: str) -> None:
    """The control: what the last two rounds of every run do, with a sink that lets everybody write."""
    report = run(tmp_path, postgres, rounds=0, seed=SEED, fenced=False)
    assert [line.planned.database for line in _held(report)] == ["sqlite", "postgres"]
    assert all(report.balance[database].twice > 0 for database in ("sqlite", "postgres"))


@pytest.mark.connectors
@pytest.mark.by_hand
@pytest.mark.parametrize("into", [Into.DELTA, Into.ICEBERG])
def test_nothing_is_lost_and_nothing_twice_when_the_commit_is_struck(
    into: Into, tmp_path: Path, postgres: str
) -> None:
    """Frozen, killed or not alone inside a commit, its task reset meanwhile: each row is there once."""
    each_once = dict.fromkeys(ON_A_COMMIT, 1)
    drawn_from = script(into=into)._replace(weights=each_once, moments=AIMED)
    report = run(
        tmp_path, postgres, rounds=len(each_once), seed=SEED_OF_LAKES, into=into, drawn_from=drawn_from
    )
    assert report.balance == {into.value: Balance()}
    assert len(report.lines) == len(each_once) + 2
    assert [line.commit for line in report.lines[-2:]] == ["refused", "refused"]


@pytest.mark.connectors
@pytest.mark.by_hand
def test_iceberg_s_own_sink_writes_twice_when_the_commit_is_struck(tmp_path: Path, postgres: str) -> None:
    """The control: it commits the batch again that another driver has committed."""
    script_of = script(into=Into.ICEBERG, fenced=False)
    drawn_from = script_of._replace(last=script_of.last[:1])
    report = run(
        tmp_path,
        postgres,
        rounds=0,
        seed=SEED_OF_LAKES,
        into=Into.ICEBERG,
        drawn_from=drawn_from,
        fenced=False,
    )
    assert report.total.lost == 0
    assert report.total.twice > 0


@pytest.mark.connectors
@pytest.mark.by_hand
def test_each_bad_row_of_kafka_s_is_put_aside_once_or_dropped(tmp_path: Path, postgres: str) -> None:
    """With the broker killed, and then a zombie in PostgreSQL."""
    script_of = script(Source.KAFKA, bad_rows=True)
    drawn_from = script_of._replace(weights={Strike.BROKER: 1}, last=script_of.last[1:])
    report = run(
        tmp_path, postgres, rounds=1, seed=SEED, source=Source.KAFKA, drawn_from=drawn_from, bad_rows=True
    )
    _require_each_in_its_place(report, "sqlite", "postgres")
    assert [line.planned.database for line in _held(report)] == ["postgres"]


@pytest.mark.connectors
@pytest.mark.by_hand
def test_each_bad_row_is_put_aside_once_elsewhere_or_dropped(tmp_path: Path, postgres: str) -> None:
    """A worker dies, another one freezes, where the bad rows are put aside and the others are not written."""
    script_of = script(into=Into.DELTA, bad_rows=True)
    drawn_from = script_of._replace(
        weights={Strike.KILL: 1}, moments=(Moment.BETWEEN,), last=script_of.last[1:]
    )
    report = run(
        tmp_path, postgres, rounds=1, seed=SEED, into=Into.DELTA, drawn_from=drawn_from, bad_rows=True
    )
    _require_each_in_its_place(report, "delta")
    assert [line.planned.moment for line in report.lines[:2]] == [Moment.BETWEEN, Moment.BETWEEN]


def _require_each_in_its_place(report: Report, *databases: str) -> None:
    """After each round all rows are in the sink, in its quarantine, or nowhere, each as it was fed.

    At the end all are in the sink but those that are dropped.
    """
    assert all(line.balance == Balance() for line in report.lines)
    places = [f"{database}{place}" for database in databases for place in ("", ", put aside", ", dropped")]
    assert report.balance == dict.fromkeys(places, Balance())
    assert all(report.rows[place] > 0 for place in places if PUT_ASIDE not in place)
    assert all(report.rows[place] == 0 for place in places if PUT_ASIDE in place)
    assert sum(line.planned.moment in OF_REPLAYS for line in report.lines) > 1
    assert not report.faults


def _held(report: Report) -> list[Line]:
    """The rounds in which a zombie gets to write whatever the timing: nothing but the fence refuses it."""
    return [line for line in report.lines if line.planned.moment is Moment.HELD]
