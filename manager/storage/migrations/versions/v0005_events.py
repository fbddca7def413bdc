"""Events, their order, and how far each webhook has been told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables; nothing has happened yet."""
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("group", sa.Text),
        sa.Column("event", sa.LargeBinary, nullable=False),
    )
    op.create_index("events_of_group", "events", ["group", "id"])
    clock = op.create_table(
        "event_clock",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_id", sa.BigInteger, nullable=False),
        sa.Column("last_at_ms", sa.BigInteger, nullable=False),
        sa.Column("floor_ms", sa.BigInteger, nullable=False),
        sa.Column("pruned_through", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(clock, [{"number": 1, "last_id": 0, "last_at_ms": 0, "floor_ms": 0, "pruned_through": 0}])
    op.create_table(
        "webhooks",
        sa.Column("webhook", sa.Text, primary_key=True),
        sa.Column("position", sa.BigInteger, nullable=False),
    )
