"""What became of transferred tasks in the groups that they were in before."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Create the table; tasks that were transferred before came without."""
    op.create_table(
        "carried_histories",
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("task", sa.Text, primary_key=True),
        sa.Column("lines", sa.LargeBinary, nullable=False),
    )
