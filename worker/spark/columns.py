"""The columns of a frame as sinks know them, and the names that are none of theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from worker.query_engine import QueryError
from worker.sinks.base import Field
from worker.sinks.sifting import MASK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame

    from definition.source import Source

HIDDEN: Final = "_sparkherd_"
"""How the names of columns begin that are beside those of a task on their way, and come to no sink."""
_RESERVED: Final = f"names a column {{name}}: names that begin with {HIDDEN} are reserved; call it otherwise"


def fields(frame: DataFrame) -> list[Field]:
    """The frame's columns as sinks know them, without the mask of its rows."""
    columns = frame.schema.jsonValue()["fields"]
    return [Field(each["name"], each["type"]) for each in columns if each["name"] != MASK]


def with_free_names(frame: DataFrame, path: str, ours: Iterable[str] = ()) -> DataFrame:
    """The frame, none of whose columns has a name of a hidden one.

    Args:
        frame: of the source or the SQL at this place of the definition.
        path: the place.
        ours: hidden columns that it has by right, once each.

    Raises:
        QueryError: one has; a batch would lose it, or fail, only much later.
    """
    taken = [name for name in frame.columns if name.lower().startswith(HIDDEN)]
    for name in ours:
        if name in taken:
            taken.remove(name)
    if taken:
        raise QueryError.at(path, _RESERVED.format(name=taken[0]), permanent=True)
    return frame


def require_free_schemas(source: Source, path: str) -> None:
    """Refuse such a name in what keys and values are taken apart by: it would take a hidden column's place.

    Raises:
        QueryError: there is one, or something nested that is called so.
    """
    for part, payload in (("key", source.key), ("value", source.value)):
        if payload is not None and HIDDEN in (payload.schema or "").lower():
            name = f"with {HIDDEN} in its name"
            raise QueryError.at(f"{path}.{part}.schema", _RESERVED.format(name=name), permanent=True)
