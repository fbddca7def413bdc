"""The tables of events: the log itself, the one row that orders it, and the positions of webhooks."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Table, Text

from manager.storage.schema import METADATA, Json
from protocol.messages.events import Event

EVENTS = Table(
    "events",
    METADATA,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("at_ms", BigInteger, nullable=False),
    Column("group", Text),
    Column("event", Json(Event | None), nullable=False),
    Index("events_of_group", "group", "id"),
)

CLOCK = Table(
    "event_clock",
    METADATA,
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("last_id", BigInteger, nullable=False),
    Column("last_at_ms", BigInteger, nullable=False),
    Column("floor_ms", BigInteger, nullable=False),
    Column("pruned_through", BigInteger, nullable=False),
)
"""One row. `floor_ms` is `last_at_ms` as it was before the present transaction's events."""

WEBHOOKS = Table(
    "webhooks",
    METADATA,
    Column("webhook", Text, primary_key=True),
    Column("position", BigInteger, nullable=False),
)
