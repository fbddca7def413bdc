"""The audit log: what admins did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the tables; what was done before is in the managers' logs only."""
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("group", sa.Text),
        sa.Column("entry", sa.LargeBinary, nullable=False),
    )
    op.create_index("audit_of_group", "audit", ["group", "id"])
    op.create_index("audit_of_who", "audit", ["who", "id"])
    numbers = op.create_table(
        "audit_numbers",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("last_id", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(numbers, [{"number": 1, "last_id": 0}])
