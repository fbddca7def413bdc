"""Iceberg tables on a disk, in a catalog in PostgreSQL that each worker has a line of its own to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa
from pyiceberg.catalog.sql import SqlCatalog

from tests.acceptance.chaos.catalog_line import CatalogLine, Commit
from tests.acceptance.chaos.lake import JARS, Lake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyiceberg.table import Table

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.lake import CommitHold, Work
    from tests.acceptance.chaos.plan import Moment

CATALOG: Final = "lake"
_EXTENSIONS: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class IcebergLake(Lake):
    """Tables by name."""

    def __init__(self, folder: Path, postgres: str, *, fenced: bool) -> None:
        super().__init__("iceberg", fenced=fenced)
        self._warehouse = folder / "lake"
        self._postgres = postgres
        self._lines: dict[str, CatalogLine] = {}
        url = sa.make_url(postgres).set(drivername="postgresql+psycopg")
        shown = url.render_as_string(hide_password=False)
        self._catalog = SqlCatalog(CATALOG, uri=shown, init_catalog_tables="false")

    def worker_flags(self, worker: str) -> list[str]:
        """Iceberg, and the worker's line to the catalog."""
        self._lines[worker] = CatalogLine(self._postgres)
        self._lines[worker].__enter__()
        conf = {
            "spark.sql.extensions": _EXTENSIONS,
            **self._lines[worker].catalog(CATALOG, self._warehouse),
            f"spark.sql.catalog.{CATALOG}.jdbc.schema-version": "V1",  # which pyiceberg knows
        }
        jars = [word for name in ("iceberg", "jdbc") for word in ("--jars", str(JARS / name))]
        return [*jars, *(word for key in conf for word in ("--spark-conf", f"{key}={conf[key]}"))]

    def definition(self, flow: Flow) -> dict[str, Any]:
        """In a namespace of the catalog's."""
        return {"format": self.format, "table": f"{CATALOG}.{_name(flow)}", "options": self.mode(flow)}

    def hold(self, worker: str, flow: Flow, moment: Moment, work: Work) -> CommitHold:
        """On the worker's line."""
        return self._lines[worker].hold_commit(Commit(flow.target, work), moment)

    def empty(self, flow: Flow) -> None:
        """By a commit of another engine's."""
        self._table(flow).delete()

    def look(self, flow: Flow) -> tuple[str, Callable[[], Any]]:
        """By another engine."""
        table = self._table(flow)
        return table.metadata_location, lambda: table.scan().to_arrow()

    def summary(self) -> str:
        """By what has not expired."""
        snapshots = sum(len(self._table(flow).metadata.snapshots) for flow in self.flows)
        return f"{self.format}: {len(self.flows)} tables, {snapshots:,} snapshots"

    def close(self) -> None:
        """Lines and catalog."""
        for line in self._lines.values():
            line.__exit__(None, None, None)
        self._catalog.close()

    def _table(self, flow: Flow) -> Table:
        return self._catalog.load_table(_name(flow))


def _name(flow: Flow) -> str:
    return f"chaos.{flow.target}"
