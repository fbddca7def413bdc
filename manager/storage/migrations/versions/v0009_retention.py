"""Since when groups are Empty: how long they are kept does not begin anew with every manager."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Add the column; of groups that are Empty already it counts from the next take-over."""
    op.add_column("groups", sa.Column("idle_since_ms", sa.BigInteger, nullable=False, server_default="0"))
