"""What managers tell of themselves, and what fires of no group, in real databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.alarms.herd_facts import ManagerFigures
from manager.core.stored_rows import AlarmRow
from manager.storage.base import StaleEpochError
from manager.storage.cluster_state import ManagerIdentity
from manager.storage.herd_table import FORGOTTEN_AFTER_MS
from manager.storage.restored_backup import raise_numbers
from protocol.messages.events import Event, EventType

if TYPE_CHECKING:
    from manager.storage.sql_storage import SqlStorage
    from tests.integration.manager.backends import Database

A, B = (ManagerIdentity(name, f"{name}-1", f"http://{name}") for name in ("a", "b"))
FIGURES = ManagerFigures(loop_lag_s=0.5, transactions=3, failed=1, seconds=0.25, last_error="x")
WITHIN_S = 60.0


def row(rule: str, **fields: Any) -> AlarmRow:
    ordinary: dict[str, Any] = {
        "subject": "database",
        "fired_at_ms": 2,
        "kind": "database_failing",
        "severity": "critical",
        "since_ms": 1,
        "told_at_ms": 3,
        "value": 50.0,
        "threshold": 20.0,
        "receivers": ("ops",),
    }
    return AlarmRow(group="", rule=rule, **(ordinary | fields))


def told(cause: str) -> Event:
    return Event(id=0, at_ms=1, type=EventType.ALARM_FIRING, cause=cause)


async def causes(storage: SqlStorage) -> list[str | None]:
    """Of all events, in order."""
    return [event.cause for event in (await storage.events.read(0, 100)).events]


async def test_managers_see_each_other_until_they_leave(storage: SqlStorage, database: Database) -> None:
    """With their figures and their silence; the gap is the own one."""
    first = await storage.herd.tell(A, ManagerFigures(), WITHIN_S)
    assert (first.gap_ms, [each.id for each in first.managers]) == (None, ["a"])
    await storage.herd.tell(B, FIGURES, WITHIN_S)
    database.run("UPDATE manager_figures SET told_at_ms = told_at_ms - 30000")
    view = await storage.herd.tell(A, FIGURES, WITHIN_S)
    assert 30_000 <= (view.gap_ms or 0) < 90_000
    a, b = sorted(view.managers)
    assert (a.silent_ms, a.is_silent, b.is_silent, b.url) == (0, False, True, "http://b")
    assert a.figures == b.figures == FIGURES
    await storage.herd.leave(ManagerIdentity("b", "b-of-before", "http://b"), WITHIN_S)
    assert len((await storage.herd.tell(A, FIGURES, WITHIN_S)).managers) == 2
    await storage.herd.leave(B, WITHIN_S)
    assert [each.id for each in (await storage.herd.tell(A, FIGURES, WITHIN_S)).managers] == ["a"]


async def test_a_manager_that_is_silent_for_a_day_is_forgotten(
    storage: SqlStorage, database: Database
) -> None:
    """So is every other one by who knows that there is none, or that all are of a copy."""
    for me in (A, B):
        await storage.herd.tell(me, FIGURES, WITHIN_S)
    late = f"UPDATE manager_figures SET told_at_ms = told_at_ms - {FORGOTTEN_AFTER_MS + 1}"
    database.run(f"{late} WHERE manager_id = 'b'")
    await storage.herd.tell(A, FIGURES, WITHIN_S)
    assert database.value("SELECT count(*) FROM manager_figures") == 1
    await storage.herd.only(B)
    assert database.value("SELECT count(*) FROM manager_figures") == 0
    await storage.herd.tell(A, FIGURES, WITHIN_S)
    with database.transaction() as connection:
        raise_numbers(connection, 1)
    assert database.value("SELECT count(*) FROM manager_figures") == 0


async def test_what_fires_and_what_is_told_of_it_are_stored_together(storage: SqlStorage) -> None:
    """An older epoch stores neither. What somebody has seen stays so when it is told again."""
    await storage.leases.prepare(1)
    epoch = (await storage.leases.seize(A))[0]
    before = len(await causes(storage))
    with pytest.raises(StaleEpochError):
        await storage.herd.store({0: epoch - 1}, [row("a")], [], [told("stale")])
    assert await storage.herd.firing() == ()
    await storage.herd.store({0: epoch}, [row("a"), row("b", subject="manager:b")], [], [told("new")])
    assert await storage.herd.acknowledge("a", "database", "ann", 7) == 1
    assert await storage.herd.acknowledge("a", None, "bob", 8) == 0
    await storage.herd.store(
        {0: epoch}, [row("a", told_at_ms=9, value=99.0)], [row("b", subject="manager:b")], []
    )
    seen = row("a", told_at_ms=9, acknowledged_by="ann", acknowledged_at_ms=7)
    assert await storage.herd.firing() == (seen,)
    assert (await causes(storage))[before:] == ["new"]


async def test_what_was_told_while_the_database_was_away_is_kept_once(storage: SqlStorage) -> None:
    """By the first manager that is back; what another one has to say of the same is no news."""
    assert await storage.herd.adopt([(row("b"), told("b")), (row("a"), told("a"))]) == 2
    assert await storage.herd.adopt([(row("a", value=1.0), told("again")), (row("c"), told("c"))]) == 1
    assert sorted(await storage.herd.firing(), key=lambda each: each.rule) == [row("a"), row("b"), row("c")]
    assert await causes(storage) == ["a", "b", "c"]


async def test_only_what_stores_something_is_counted(storage: SqlStorage, database: Database) -> None:
    """A database that can be read and not written fails."""
    counted = storage.tally.transactions
    await storage.herd.firing()
    assert storage.tally.transactions == counted
    await storage.probe()
    await storage.herd.tell(A, FIGURES, WITHIN_S)
    assert (storage.tally.transactions, storage.tally.failed) == (counted + 2, 0)
    database.run("DROP TABLE manager_figures")
    with pytest.raises(Exception, match="manager_figures"):
        await storage.herd.tell(A, FIGURES, WITHIN_S)
    assert (storage.tally.transactions, storage.tally.failed) == (counted + 3, 1)
    assert "manager_figures" in (storage.tally.last_error or "")
