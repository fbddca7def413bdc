"""The tables: one a row type, columns named like its fields. Migrations make them; a test compares both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Enum,
    Float,
    Index,
    LargeBinary,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    text,
)

from manager.core.stored_rows import (
    AlarmRow,
    Blame,
    CarriedHistoryRow,
    GroupRow,
    MemberRow,
    OffsetRow,
    OwnerLease,
    OwnershipRow,
    Parcel,
    RebalanceRow,
    Row,
    TaskRow,
    TransferRow,
)
from protocol.connectors import Needs
from protocol.messages.events import Event
from protocol.messages.history import TaskHistoryLine
from protocol.messages.membership import Protocol
from protocol.messages.tasks import Reached, TaskHome, TaskReset
from protocol.states import GroupState, Target, TaskState, TransferStep

if TYPE_CHECKING:
    from sqlalchemy import Dialect


class Json(TypeDecorator[Any]):
    """A value kept as the JSON text it came as, so that what is opaque stays untouched."""

    impl = LargeBinary
    cache_ok = True

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: Any | None, dialect: Dialect) -> bytes:  # noqa: ARG002 - inherited
        """Encode."""
        return msgspec.json.encode(value)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> Any:  # noqa: ARG002 - inherited
        """Decode."""
        return msgspec.json.decode(value or b"null", type=self.kind)


def _enum(kind: type[GroupState | TaskState | Target | TransferStep]) -> Enum:
    return Enum(kind, native_enum=False, length=32, values_callable=lambda k: [member.value for member in k])


def _key(name: str, kind: type[Text | BigInteger] = Text) -> Column[Any]:
    return Column(name, kind, primary_key=True, autoincrement=False)


def _count(name: str) -> Column[Any]:
    return Column(name, BigInteger, nullable=False)


def _text(name: str) -> Column[Any]:
    return Column(name, Text, nullable=False)


METADATA = MetaData()
IS_FIRING: Final = text("resolved_at_ms = 0")
"""Of an alarm. Written out wherever it is asked for: with a parameter in it no index would be found."""

TABLES: dict[type[Row], Table] = {
    GroupRow: Table(
        "groups",
        METADATA,
        _key("group"),
        _count("generation"),
        Column("state", _enum(GroupState), nullable=False),
        Column("protocol_type", Text),
        Column("protocol_name", Text),
        Column("leader_id", Text),
        _count("tasks_revision"),
        _count("idle_since_ms"),
    ),
    MemberRow: Table(
        "members",
        METADATA,
        _key("group"),
        _key("member_id"),
        _count("position"),
        Column("instance_id", Text),
        _text("client_id"),
        _text("host"),
        _count("session_timeout_ms"),
        _count("rebalance_timeout_ms"),
        Column("protocols", Json(tuple[Protocol, ...]), nullable=False),
        Column("assignment", Json(msgspec.Raw), nullable=False),
        Column("draining", Boolean, nullable=False),
    ),
    OffsetRow: Table(
        "offsets",
        METADATA,
        _key("group"),
        _key("offset_key"),
        Column("offset", Json(msgspec.Raw), nullable=False),
        _text("metadata"),
    ),
    TaskRow: Table(
        "tasks",
        METADATA,
        _key("group"),
        _key("task"),
        Column("definition", Json(msgspec.Raw), nullable=False),
        _count("definition_version"),
        Column("target", _enum(Target), nullable=False),
        _count("restart_count"),
        _count("revision"),
        Column("weight", Float, nullable=False),
        Column("worker", Text),
        Column("labels", Json(dict[str, str]), nullable=False),
        Column("needs", Json(Needs | None)),
        Column("exclusive", Boolean),
    ),
    OwnershipRow: Table(
        "ownership",
        METADATA,
        _key("group"),
        _key("task"),
        _count("token"),
        Column("owner", Text),
        Column("state", _enum(TaskState), nullable=False),
        _count("generation_id"),
        Column("batch_id", BigInteger),
        Column("cause", Text),
        _count("since_ms"),
        Column("lost_by", Text),
        Column("reset", Json(TaskReset | None)),
        Column("lease", Json(OwnerLease | None)),
        Column("blame", Json(Blame | None)),
        Column("reached", Json(Reached | None)),
        Column("unsettled", Boolean, nullable=False),
        Column("home", Json(TaskHome | None)),
        Column("restarts", LargeBinary),
    ),
    TransferRow: Table(
        "transfers",
        METADATA,
        _key("group"),
        _key("transfer"),
        _key("task"),
        Column("leaves", Boolean, nullable=False),
        _text("peer_group"),
        _text("peer_task"),
        Column("step", _enum(TransferStep), nullable=False),
        Column("target", _enum(Target), nullable=False),
        _count("started_at_ms"),
        _count("changed_at_ms"),
        Column("by", Text),
        Column("cause", Text),
        Column("parcel", Json(Parcel | None)),
        Index("transfers_by_id", "transfer"),
    ),
    CarriedHistoryRow: Table(
        "carried_histories",
        METADATA,
        _key("group"),
        _key("task"),
        Column("lines", Json(tuple[TaskHistoryLine, ...]), nullable=False),
    ),
    RebalanceRow: Table(
        "rebalances",
        METADATA,
        _key("group"),
        _key("generation_id", BigInteger),
        _text("reason"),
        _count("started_at_ms"),
        _count("duration_ms"),
        _count("members"),
        _count("moved"),
    ),
    AlarmRow: Table(
        "alarms",
        METADATA,
        _key("group"),
        _key("rule"),
        _key("subject"),
        _key("fired_at_ms", BigInteger),
        _text("kind"),
        _text("severity"),
        _count("since_ms"),
        _count("told_at_ms"),
        _count("resolved_at_ms"),
        Column("acknowledged_by", Text),
        _count("acknowledged_at_ms"),
        Column("value", Float),
        Column("threshold", Float),
        Column("worker", Text),
        Column("receivers", Json(tuple[str, ...]), nullable=False),
    ),
}


def _firing(name: str, *columns: str) -> Index:
    """Of the alarms that fire only: there are few of those at most times. The newest come first."""
    alarms = TABLES[AlarmRow].c
    ordered = (alarms[each].desc() if each == "fired_at_ms" else alarms[each] for each in columns)
    return Index(name, *ordered, sqlite_where=IS_FIRING, postgresql_where=IS_FIRING)


_firing("alarms_firing", "severity", "fired_at_ms", "group", "rule", "subject")
_firing("alarms_firing_of_group", "group", "severity", "fired_at_ms", "rule", "subject")
_firing("alarms_firing_of_rule", "rule", "severity", "fired_at_ms", "group", "subject")
_firing("alarms_firing_of_rule_in_group", "group", "rule", "severity", "fired_at_ms", "subject")

LOAD_ORDER: dict[type[Row], str] = {
    AlarmRow: "fired_at_ms",
    MemberRow: "position",
    RebalanceRow: "generation_id",
}
"""Rows whose order means something, and the column that tells it."""

MANAGERS = Table(
    "managers",
    METADATA,
    _key("manager_id"),
    Column("incarnation", Text, nullable=False, unique=True),
    _text("url"),
    _count("started_at_ms"),
    Column("expires_at_ms", BigInteger),
    Column("contested", Boolean, nullable=False),
)
"""Those that are there; `expires_at_ms` is when the lease ends by the database's clock, null for never.

A manager is `contested` when it has the id and the URL of another one that has shown to live, too.
"""

SLOTS = Table("slots", METADATA, _key("slot", BigInteger), _count("epoch"), Column("holder", Text))
"""All slots; `holder` is the incarnation of the manager that has it."""

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
    Column("state", Text),
    Column("since_ms", BigInteger),
    Column("last_error", Text),
)
