"""What managers tell of themselves, and the alarms that are of no group."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Create the tables; managers that are there tell of themselves within seconds."""
    op.create_table(
        "manager_figures",
        sa.Column("manager_id", sa.Text, primary_key=True),
        sa.Column("incarnation", sa.Text, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("told_at_ms", sa.BigInteger, nullable=False),
        sa.Column("figures", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "herd_alarms",
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("fired_at_ms", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("told_at_ms", sa.BigInteger, nullable=False),
        sa.Column("acknowledged_by", sa.Text),
        sa.Column("acknowledged_at_ms", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("threshold", sa.Float),
        sa.Column("receivers", sa.LargeBinary, nullable=False),
    )
