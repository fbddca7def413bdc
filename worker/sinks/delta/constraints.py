"""What a Delta table asks of each row; rules without I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from worker.sinks.base import Condition
from worker.sinks.column_types import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from worker.sinks.base import Field
    from worker.sinks.delta.marks import Seen

_CHECK: Final = "delta.constraints."
"""What the names of properties begin with that are constraints; the rest is the constraint's own name."""


def conditions_of(fields: Sequence[Field], seen: Seen) -> tuple[Condition, ...]:
    """The table's CHECK constraints, and its columns that take no NULL, with what Delta means by them.

    Fields of structs that take no NULL are none of these: of them Delta refuses the whole batch.

    Args:
        fields: the query's columns.
        seen: the table.
    """
    return (*_checks(seen), *_not_null(fields, seen))


def _checks(seen: Seen) -> Iterator[Condition]:
    for name, where in sorted(seen.configuration.items()):
        if name.startswith(_CHECK):
            yield Condition(name.removeprefix(_CHECK), where)


def _not_null(fields: Sequence[Field], seen: Seen) -> Iterator[Condition]:
    ours = {field.name.lower() for field in fields}
    for column in seen.columns:
        if not column.get("nullable", True) and column["name"].lower() in ours:
            yield Condition(f"NOT NULL {column['name']}", f"{quoted(column['name'])} IS NOT NULL")
