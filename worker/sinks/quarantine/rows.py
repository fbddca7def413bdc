"""Rows that are put aside, as the rows of whatever place has them (protocol §6, Quarantine)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from worker.sinks.base import Field

if TYPE_CHECKING:
    from collections.abc import Iterable

    from worker.sinks.aside import Aside
    from worker.sinks.fence import Mark, Owner
    from worker.sinks.parts import Rows

FIELDS: Final = (
    Field("group_id", "string"),
    Field("task", "string"),
    Field("resets", "long"),
    Field("batch_id", "long"),
    Field("nth", "integer"),
    Field("token", "long"),
    Field("put_aside_at", "timestamp"),
    Field("reason", "string"),
    Field("name", "string"),
    Field("error", "string"),
    Field("form", "string"),
    Field("raw", "binary"),
    Field("origin", "string"),
    Field("replay", "string"),
)
"""Its columns. `replay` is the replay that has taken the row and is not over; else NULL."""
KEY: Final = ("group_id", "task", "resets", "batch_id", "nth")
"""By which one is told from all others."""
MOST_ERROR: Final = 2000
"""Characters of what is wrong with a row."""


def rows_of(aside: Iterable[Aside], owner: Owner, mark: Mark, micros: int) -> Rows:
    """Rows of these columns.

    Args:
        aside: what is put aside.
        owner: who does so.
        mark: with which batch.
        micros: when, in microseconds since 1970.
    """
    common = (owner.group, owner.task, owner.resets, mark.batch_id)
    return [(*common, nth, owner.token, micros, *_told(each), None) for nth, each in enumerate(aside)]


def _told(row: Aside) -> tuple[Any, ...]:
    names = ", ".join(row.names)
    origin = _storable(json.dumps(dict(row.origin), ensure_ascii=False)) if row.origin else None
    return (row.reason, names, _storable(row.error[:MOST_ERROR]), row.form, row.raw, origin)


def _storable(text: str) -> str:
    """No text of PostgreSQL's has the character NUL in it, and none of a database's half of a character."""
    return text.encode(errors="replace").decode().replace("\0", "␀")
