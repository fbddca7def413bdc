"""Managers that took the id and the URL of one that was alive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Add the column; nobody has, as far as is known."""
    op.add_column("managers", sa.Column("contested", sa.Boolean, nullable=False, server_default=sa.false()))
