"""Whether a task wants a worker of its own."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Add the column; no definition of before could say so."""
    op.add_column("tasks", sa.Column("exclusive", sa.Boolean))
