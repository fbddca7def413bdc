"""The demo's sink in Delta Lake: tables in a folder, read back by `deltalake`, which is not Spark."""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from protocol.connectors import PACKAGES
from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cli.demo.plan import Value
    from cli.demo.truth import Row

READER: Final = "deltalake"
QUERY: Final = (
    "SELECT COUNT(*) AS flights, COUNT(DISTINCT carrier) AS carriers, MAX(dep_delay) AS latest FROM t"
)


class DeltaSink:
    """`lake/flights` and `lake/delays` in the work folder.

    Two MERGEs that meet in one table fail one of them, so each task that upserts has a table of its own.

    Raises:
        StartupError: nothing here can read Delta, or there is no Delta in the folder of jars.
    """

    def __init__(self, workdir: Path, jars: str | None) -> None:
        """`jars` is what `make jars` makes; without it, Spark fetches Delta from Maven Central."""
        if find_spec(READER) is None:
            raise StartupError(
                f"--sink delta: the tables are read back by {READER}: pip install 'sparkherd[demo,delta]'"
            )
        self.place = workdir / "lake"
        self.worker_flags: tuple[str, ...] = (
            *_loaded(jars),
            "--spark-conf",
            "spark.databricks.delta.snapshotPartitions=2",
        )
        self._known: dict[tuple[str, str], tuple[Any, Mapping[Value, int]]] = {}

    @property
    def how_to_read(self) -> tuple[str, ...]:
        """A line each for a shell and for pyspark."""
        path = self.place / "flights"
        read = f"print(QueryBuilder().register('t', DeltaTable('{path}')).execute('{QUERY}').read_all())"
        return (
            f"the flights are a Delta table: {path}",
            f'{sys.executable} -c "from deltalake import DeltaTable, QueryBuilder; {read}"',
            f"in pyspark with Delta: spark.read.format('delta').load('{path}').show()",
        )

    def definition(self, table: str, part: str, key: Sequence[str] = ()) -> dict[str, Any]:
        """At a path; flights are laid apart by carrier."""
        if key:
            path, options = self.place / table / part, {"mode": "upsert", "key": list(key)}
            return {"format": "delta", "options": {"path": str(path), **options}}
        path = self.place / table
        return {"format": "delta", "options": {"path": str(path)}, "partition_by": ["carrier"]}

    def counted(self, table: str, by: str) -> Mapping[Value, int]:
        """Of all rows."""
        return self._numbers(table, by, "COUNT(*)")

    def summed(self, table: str, by: str, column: str) -> Mapping[Value, int]:
        """Of all tables of that name, which have no value of `by` in common."""
        return self._numbers(table, by, f"SUM({column})")

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Row]:
        """Of all tables of that name."""
        for found in self._tables(table):
            yield from _query(found, f"SELECT {', '.join(columns)} FROM t")  # noqa: S608 - our own names

    def _numbers(self, table: str, by: str, number: str) -> Mapping[Value, int]:
        """A table is read anew when it has changed."""
        numbers: dict[Value, int] = {}
        for found in self._tables(table):
            key = (found.table_uri, number)
            version, known = self._known.get(key, (None, {}))
            if found.version() != version:
                known = dict(_query(found, f"SELECT {by}, {number} FROM t GROUP BY 1"))  # noqa: S608 - likewise
                self._known[key] = (found.version(), known)
            numbers |= known
        return numbers

    def _tables(self, table: str) -> Iterator[Any]:
        """Those that can be opened: from the first claim to the first columns, a table has none."""
        delta = importlib.import_module(READER)
        errors = importlib.import_module(f"{READER}.exceptions")
        folder = self.place / table
        for log in sorted((*folder.glob("_delta_log"), *folder.glob("*/_delta_log"))):
            found = None
            with suppress(errors.DeltaError):
                found = delta.DeltaTable(str(log.parent))
            if found is not None:
                yield found


def _query(table: Any, statement: str) -> Iterable[Any]:
    builder = importlib.import_module(READER).QueryBuilder()
    found = builder.register("t", table).execute(statement).read_all()
    return zip(*(found.column(at).to_pylist() for at in range(found.num_columns)), strict=True)


def _loaded(jars: str | None) -> tuple[str, str]:
    """The flag by which a worker gets Delta."""
    if jars is None:
        return "--packages", PACKAGES["delta"]
    folder = Path(jars).resolve() / "spark" / "delta"
    if not any(folder.glob("delta-spark_*.jar")):
        raise StartupError(f"--jars {jars}: no Delta in {folder}; `make jars`, in a checkout, copies it")
    return "--jars", str(folder)
