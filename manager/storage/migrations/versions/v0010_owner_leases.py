"""Former owners that may still run a task."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Add the column; nobody is waited for."""
    op.add_column("ownership", sa.Column("lease", sa.LargeBinary))
