"""Groups, members, offsets, tasks, ownership, history."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _key(name: str, kind: type[sa.Text | sa.BigInteger] = sa.Text) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def _column(name: str, kind: type[sa.types.TypeEngine[Any]], *, nullable: bool = False) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=nullable)


def _state(name: str) -> sa.Column[Any]:
    return sa.Column(name, sa.String(32), nullable=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "groups",
        _key("group"),
        _column("generation", sa.BigInteger),
        _state("state"),
        _column("protocol_type", sa.Text, nullable=True),
        _column("protocol_name", sa.Text, nullable=True),
        _column("leader_id", sa.Text, nullable=True),
        _column("tasks_revision", sa.BigInteger),
    )
    op.create_table(
        "members",
        _key("group"),
        _key("member_id"),
        _column("position", sa.BigInteger),
        _column("instance_id", sa.Text, nullable=True),
        _column("client_id", sa.Text),
        _column("host", sa.Text),
        _column("session_timeout_ms", sa.BigInteger),
        _column("rebalance_timeout_ms", sa.BigInteger),
        _column("protocols", sa.LargeBinary),
        _column("assignment", sa.LargeBinary),
    )
    op.create_table(
        "offsets",
        _key("group"),
        _key("offset_key"),
        _column("offset", sa.LargeBinary),
        _column("metadata", sa.Text),
    )
    op.create_table(
        "tasks",
        _key("group"),
        _key("task"),
        _column("definition", sa.LargeBinary),
        _column("definition_version", sa.BigInteger),
        _state("target"),
        _column("restart_count", sa.BigInteger),
        _column("revision", sa.BigInteger),
        _column("weight", sa.Float),
        _column("worker", sa.Text, nullable=True),
        _column("labels", sa.LargeBinary),
    )
    op.create_table(
        "ownership",
        _key("group"),
        _key("task"),
        _column("token", sa.BigInteger),
        _column("owner", sa.Text, nullable=True),
        _state("state"),
        _column("generation_id", sa.BigInteger),
        _column("batch_id", sa.BigInteger, nullable=True),
        _column("cause", sa.Text, nullable=True),
        _column("since_ms", sa.BigInteger),
    )
    op.create_table(
        "rebalances",
        _key("group"),
        _key("generation_id", sa.BigInteger),
        _column("reason", sa.Text),
        _column("started_at_ms", sa.BigInteger),
        _column("duration_ms", sa.BigInteger),
        _column("members", sa.BigInteger),
        _column("moved", sa.BigInteger),
    )
