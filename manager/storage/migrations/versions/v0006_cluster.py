"""Managers that share the groups: who is there, and who has which slot under which epoch."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the tables; the first manager that starts says how many slots there are."""
    op.create_table(
        "managers",
        sa.Column("manager_id", sa.Text, primary_key=True),
        sa.Column("incarnation", sa.Text, nullable=False, unique=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("started_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger),
    )
    op.create_table(
        "slots",
        sa.Column("slot", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("epoch", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text),
    )
