"""Transfers of tasks between groups, and the names that sinks know a transferred task by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Make the table and add the column; every task of before has its own names."""
    op.add_column("ownership", sa.Column("home", sa.LargeBinary))
    op.create_table(
        "transfers",
        sa.Column("group", sa.Text, primary_key=True, autoincrement=False),
        sa.Column("transfer", sa.Text, primary_key=True, autoincrement=False),
        sa.Column("task", sa.Text, primary_key=True, autoincrement=False),
        sa.Column("leaves", sa.Boolean, nullable=False),
        sa.Column("peer_group", sa.Text, nullable=False),
        sa.Column("peer_task", sa.Text, nullable=False),
        sa.Column("step", sa.String(32), nullable=False),
        sa.Column("target", sa.String(32), nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("changed_at_ms", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Text),
        sa.Column("cause", sa.Text),
        sa.Column("parcel", sa.LargeBinary),
    )
    op.create_index("transfers_by_id", "transfers", ["transfer"])
