"""Names of tables as Spark's SQL has them, and what may be said of the catalog that a table is in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from worker.sinks.column_types import quoted
from worker.sinks.errors import SinkError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_SETTING: Final = "spark.sql.catalog"
_CATALOGS: Final = frozenset(
    f"org.apache.iceberg.spark.{name}" for name in ("SparkCatalog", "SparkSessionCatalog")
)
_TYPE: Final = "type"
_IMPL: Final = "catalog-impl"
_HADOOP: Final = frozenset({"hadoop", "org.apache.iceberg.hadoop.hadoopcatalog"})
_HIVE: Final = frozenset({"hive", "org.apache.iceberg.hive.hivecatalog"})
"""In lower case, as names of settings are here: Iceberg looks at neither's case."""
_HIVE_LOCKS: Final = "hadoop.iceberg.engine.hive.lock-enabled"
NO_COMPARE_AND_SWAP: Final = (
    "a catalog of that type looks whether anybody has committed and renames then, so a frozen writer can put"
    " its batch over others'; use one whose commit compares and swaps, such as jdbc or rest"
)


class TableName(NamedTuple):
    """A table in a catalog of Spark's; `path` is its namespaces and its own name."""

    catalog: str
    path: tuple[str, ...]

    @property
    def sql(self) -> str:
        """As it stands in a statement."""
        return ".".join(map(quoted, (self.catalog, *self.path)))

    def of(self, part: str) -> str:
        """A table of metadata."""
        return f"{self.sql}.{quoted(part)}"


def read_name(text: str) -> TableName:
    """The table that `sink.table` names."""
    parts = [inside.replace("``", "`") if inside else plain for inside, plain in _PART.findall(text)]
    return TableName(parts[0], tuple(parts[1:]))


def require_safe(catalog: str, settings: Mapping[str, str]) -> None:
    """Refuse what is no catalog of Iceberg's, and those whose commit two writers can both be told has worked.

    Args:
        catalog: its name.
        settings: Spark's.

    Raises:
        SinkError: naming the setting.
    """
    base = f"{_SETTING}.{catalog}"
    made_by = settings.get(base)
    if made_by is None:
        raise SinkError(f"sink.table: the worker's Spark has no catalog {catalog}: {base} is not set")
    if made_by not in _CATALOGS:
        raise SinkError(f"sink.table: the catalog {catalog} is not of Iceberg's: {base} is {made_by}")
    given = [
        (key.removeprefix(f"{base}.").lower(), key, value)
        for key, value in settings.items()
        if key.startswith(f"{base}.")
    ]
    for name, key, value in given:
        if name in {_TYPE, _IMPL} and value.lower() in _HADOOP:
            raise SinkError(f"sink.table: {key} is {value}: {NO_COMPARE_AND_SWAP}")
    _require_no_hive_locks(base, [(name, value) for name, _, value in given])


def _require_no_hive_locks(base: str, given: Sequence[tuple[str, str]]) -> None:
    """A lock that times out under a frozen writer keeps nobody out; without locks the metastore compares.

    A name may be given twice, in other letters: nobody knows which of them counts.
    """
    kinds = [value for name, value in given if name in {_TYPE, _IMPL}]
    is_hive = not kinds or any(kind.lower() in _HIVE for kind in kinds)
    locks = [value.lower() for name, value in given if name == _HIVE_LOCKS]
    if is_hive and (not locks or any(value != "false" for value in locks)):
        raise SinkError(
            f"sink.table: {base}.type is {kinds[0] if kinds else 'hive'}, and {base}.{_HIVE_LOCKS} is not"
            " false: with locks the metastore does not compare what it replaces, so a frozen writer can put"
            " its batch over others'"
        )
