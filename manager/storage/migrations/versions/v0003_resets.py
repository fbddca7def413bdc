"""Tasks that were started anew."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the column; nothing was reset."""
    op.add_column("ownership", sa.Column("reset", sa.LargeBinary))
