"""What the Spark of a task's worker has to have."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column; what the tasks of before need is known with their next definition."""
    op.add_column("tasks", sa.Column("needs", sa.LargeBinary))
