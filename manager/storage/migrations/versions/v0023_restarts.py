"""When tasks were restarted after failures, so that rules of alarms can count them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Add the column; what was before nobody has counted."""
    op.add_column("ownership", sa.Column("restarts", sa.LargeBinary))
