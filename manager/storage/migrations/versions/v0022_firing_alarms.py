"""What fires in any group is read a page at a time, along an index for each way to ask for it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"

NEWEST = sa.text("fired_at_ms DESC")
INDEXES: dict[str, list[str | sa.TextClause]] = {
    "alarms_firing": ["severity", NEWEST, "group", "rule", "subject"],
    "alarms_firing_of_group": ["group", "severity", NEWEST, "rule", "subject"],
    "alarms_firing_of_rule": ["rule", "severity", NEWEST, "group", "subject"],
    "alarms_firing_of_rule_in_group": ["group", "rule", "severity", NEWEST, "subject"],
}


def upgrade() -> None:
    """Index those that fire; what is over is read with its group only."""
    is_firing = sa.text("resolved_at_ms = 0")
    for name, columns in INDEXES.items():
        op.create_index(name, "alarms", columns, sqlite_where=is_firing, postgresql_where=is_firing)
