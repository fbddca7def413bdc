"""Alarms: those of each group, and the rules and silences of the herd."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Create the tables; there are no rules, so nothing rings yet."""
    op.create_table(
        "alarms",
        sa.Column("group", sa.Text, primary_key=True),
        sa.Column("rule", sa.Text, primary_key=True),
        sa.Column("subject", sa.Text, primary_key=True),
        sa.Column("fired_at_ms", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("severity", sa.Text, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("told_at_ms", sa.BigInteger, nullable=False),
        sa.Column("resolved_at_ms", sa.BigInteger, nullable=False),
        sa.Column("acknowledged_by", sa.Text),
        sa.Column("acknowledged_at_ms", sa.BigInteger, nullable=False),
        sa.Column("value", sa.Float),
        sa.Column("threshold", sa.Float),
        sa.Column("worker", sa.Text),
        sa.Column("receivers", sa.LargeBinary, nullable=False),
    )
    documents = op.create_table(
        "alarm_documents",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    empty = [{"name": name, "version": 0, "body": b"[]"} for name in ("rules", "silences")]
    op.bulk_insert(documents, empty)
