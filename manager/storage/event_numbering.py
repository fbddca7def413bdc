"""Numbering events: in one order, without holes, whoever writes and however slowly.

The trap of an outbox is that numbers are given out before transactions commit: a reader that has seen 8 asks
for what comes after it, and misses 7, which commits a moment later. Clocks do not help: those of several
managers differ. Here the counter is a row, and counting is an update of it *in the transaction that writes
the events*:

- The update locks the row until the transaction ends, so the next writer gets its numbers after this one's
  events can be seen: the order of the numbers is the order of the commits. (PostgreSQL makes a transaction
  visible before it lets its locks go; SQLite has one writer at a time anyway.)
- A transaction that is rolled back, or dies with its manager, takes its numbers back with it: no holes.
- It is the last thing a transaction does before it commits: what it has locked by then it needs nobody
  else for, so it takes part in no deadlock, and managers wait for one another for one insert and one commit.
  Transactions without events do not touch the row.
- `at_ms` is the writer's clock, but never behind the event before it: a manager whose clock is late gets the
  times up to which others have come. What happened in one transaction is put in the order of its times first.

A reader takes the row and the events in one statement, which sees one state of both: it cannot be shown the
count of one moment and the events, or the pruning, of another.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
from sqlalchemy import BigInteger, bindparam, case, insert, update

from manager.storage.inserts import insert_rows
from manager.storage.schema import CLOCK, EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection

    from protocol.messages.events import Event

_COUNT, _NEWEST = bindparam("count", type_=BigInteger), bindparam("newest", type_=BigInteger)
_TICK = (
    update(CLOCK)
    .values(
        last_id=CLOCK.c.last_id + _COUNT,
        floor_ms=CLOCK.c.last_at_ms,
        last_at_ms=case((CLOCK.c.last_at_ms < _NEWEST, _NEWEST), else_=CLOCK.c.last_at_ms),
    )
    .returning(CLOCK.c.last_id, CLOCK.c.floor_ms)
)

_INSERT = insert(EVENTS)


def append(connection: Connection, events: Sequence[Event]) -> None:
    """Number `events` and write them; the transaction has to do nothing but commit after this."""
    if not events:
        return
    ordered = in_order(events)
    tick = connection.execute(_TICK, {"count": len(ordered), "newest": ordered[-1].at_ms})
    last_id, floor_ms = tick.one()
    numbered = number(ordered, last_id - len(ordered), floor_ms)
    insert_rows(connection, _INSERT, map(_row, numbered))


def in_order(events: Iterable[Event]) -> list[Event]:
    """`events` by their times; those of one group stay as they came, even if the clock was set back."""
    reached: dict[str | None, int] = {}
    dated = []
    for event in events:
        reached[event.group] = at_ms = max(event.at_ms, reached.get(event.group, 0))
        dated.append(msgspec.structs.replace(event, at_ms=at_ms))
    return sorted(dated, key=attrgetter("at_ms"))


def number(events: Iterable[Event], after: int, floor_ms: int) -> list[Event]:
    """`events` with the ids after `after`, none dated before `floor_ms`."""
    return [
        msgspec.structs.replace(event, id=number, at_ms=max(event.at_ms, floor_ms))
        for number, event in enumerate(events, after + 1)
    ]


def _row(event: Event) -> dict[str, Any]:
    return {"id": event.id, "at_ms": event.at_ms, "group": event.group, "event": event}
