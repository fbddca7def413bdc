"""Workers that are drained, and tasks that are kept for lost ones."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the columns; nobody is drained, nothing is kept."""
    op.add_column("members", sa.Column("draining", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("ownership", sa.Column("lost_by", sa.Text))
