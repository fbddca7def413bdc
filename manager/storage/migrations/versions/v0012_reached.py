"""How far tasks have come, and in which checkpoint."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column; workers tell it with their next batches."""
    op.add_column("ownership", sa.Column("reached", sa.LargeBinary))
