"""What SQL has no common words for: inserting a row that may be there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    from sqlalchemy import Table


def insert_into(table: Table, dialect: str) -> sqlite.Insert | postgresql.Insert:
    """An insert that can be told what to do on a conflict."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
