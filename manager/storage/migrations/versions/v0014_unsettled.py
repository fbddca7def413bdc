"""Tasks that a former owner may still write for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Add the column; nobody is suspected."""
    op.add_column("ownership", sa.Column("unsettled", sa.Boolean, nullable=False, server_default=sa.false()))
