"""What a definition's `partition_by` says of a table: columns, or what Iceberg makes of them; no I/O."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from worker.sinks.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from worker.sinks.base import Field

_BY_TIME: Final = {"year": "years", "month": "months", "day": "days", "hour": "hours"}
_CALL: Final = re.compile(r"\s*(years?|months?|days?|hours?)\s*\(\s*([^,()]+?)\s*\)\s*", re.IGNORECASE)
_SIZED: Final = re.compile(
    r"\s*(bucket|truncate)\s*\(\s*([1-9]\d{0,8})\s*,\s*([^,()]+?)\s*\)\s*", re.IGNORECASE
)


def partition_fields(partition_by: Sequence[str], fields: Sequence[Field]) -> list[str]:
    """Each as Iceberg's SQL has it, in one spelling: a column, `days(c)`, `bucket(16, c)`, `truncate(4, c)`.

    Raises:
        SchemaError: it is none of these, the query has no such column, or two are the same.
    """
    wanted = [_field(text, fields) for text in partition_by]
    for at, field in enumerate(wanted):
        if field in wanted[:at]:
            raise SchemaError(f"sink.partition_by names {field.replace('`', '')} twice")
    return wanted


def _field(text: str, fields: Sequence[Field]) -> str:
    if call := _CALL.fullmatch(text):
        by = call[1].lower()
        return f"{_BY_TIME.get(by, by)}({_column(call[2], fields)})"
    if sized := _SIZED.fullmatch(text):
        return f"{sized[1].lower()}({sized[2]}, {_column(sized[3], fields)})"
    return _column(text, fields)


def _column(name: str, fields: Sequence[Field]) -> str:
    for field in fields:
        if field.name.lower() == name.lower():
            return "`" + field.name.replace("`", "``") + "`"
    known = ", ".join(field.name for field in fields)
    raise SchemaError(f"sink.partition_by names {name}, but the query's columns are {known}")


def require_same(wanted: Sequence[str], there: Sequence[str]) -> None:
    """Refuse a table that is laid out otherwise than the definition says; one that says nothing takes any.

    Args:
        wanted: as of `partition_fields`.
        there: as Spark describes the table's, in the same spelling.

    Raises:
        SchemaError: with both.
    """
    if wanted and [_folded(each) for each in wanted] != [_folded(each) for each in there]:
        now = ", ".join(there) or "nothing"
        raise SchemaError(
            f"the table is partitioned by {now.replace('`', '')}, and sink.partition_by says"
            f" {', '.join(wanted).replace('`', '')}: change one of them"
        )


def _folded(field: str) -> str:
    return field.replace("`", "").replace(" ", "").lower()
