"""Worker deaths that are held against tasks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Add the column; nothing is held against any task yet."""
    op.add_column("ownership", sa.Column("blame", sa.LargeBinary))
