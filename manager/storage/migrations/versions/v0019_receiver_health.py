"""How each subscriber of the events is: whether it takes them, since when, and why it last did not."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Add the columns; of those that were there nothing is known."""
    op.add_column("webhooks", sa.Column("state", sa.Text))
    op.add_column("webhooks", sa.Column("since_ms", sa.BigInteger))
    op.add_column("webhooks", sa.Column("last_error", sa.Text))
