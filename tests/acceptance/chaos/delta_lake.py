"""Delta tables on a disk, whose commits are held by a log store of the stage's."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable

from tests import java_sources
from tests.acceptance.chaos.lake import JARS, Lake
from tests.acceptance.chaos.program import LOG_STORE
from tests.delta_sessions import FEW_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.lake import CommitHold, Work
    from tests.acceptance.chaos.plan import Moment

OWN_JAR: Final = JARS.parents[1] / "worker" / "sinks" / "delta" / "sparkherd-delta.jar"
SOURCE: Final = Path(__file__).with_name("HeldLogStore.java")
_CONF: Final = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.delta.logStore.file.impl": LOG_STORE,
    **FEW_ROWS,
}


class DeltaLake(Lake):
    """Tables by path; the place of a hold is a file that the log store looks for."""

    def __init__(self, folder: Path, postgres: str, *, fenced: bool) -> None:
        """No database is needed."""
        del postgres
        super().__init__("delta", fenced=fenced)
        self._folder = folder / "lake"
        self._holds = folder / "holds"
        self._jars = compiled(folder / "held-jar")

    def worker_flags(self, worker: str) -> list[str]:
        """Delta, and the stage's log store."""
        holds = self._holds / worker
        holds.mkdir(parents=True, exist_ok=True)
        conf = {**_CONF, "spark.hadoop.sparkherd.chaos.holds": str(holds)}
        jars = [word for each in (JARS / "delta", self._jars) for word in ("--jars", str(each))]
        return [*jars, *(word for key in conf for word in ("--spark-conf", f"{key}={conf[key]}"))]

    def definition(self, flow: Flow) -> dict[str, Any]:
        """At a path of its own."""
        return {"format": self.format, "options": {"path": str(self.path(flow)), **self.mode(flow)}}

    def hold(self, worker: str, flow: Flow, moment: Moment, work: Work) -> CommitHold:
        """From the next look of the log store on."""
        return self.hold_of(worker, flow.target, moment, work)

    def hold_of(self, worker: str, table: str, moment: Moment, work: Work) -> CommitHold:
        """The same of any table."""
        return _FileHold(self._holds / worker / f"{table}-{work.value}-{moment.name.lower()}")

    def empty(self, flow: Flow) -> None:
        """By a commit of another engine's."""
        DeltaTable(str(self.path(flow))).delete()

    def look(self, flow: Flow) -> tuple[int, Callable[[], Any]]:
        """By another engine."""
        table = DeltaTable(str(self.path(flow)))
        return table.version(), table.to_pyarrow_table

    def summary(self) -> str:
        """By their logs."""
        versions = sum(DeltaTable(str(self.path(flow))).version() + 1 for flow in self.flows)
        return f"{self.format}: {len(self.flows)} tables, {versions:,} commits"

    def close(self) -> None:
        """Nothing is open."""

    def path(self, flow: Flow) -> Path:
        """Where the flow's table is."""
        return self._folder / flow.target


class _FileHold:
    def __init__(self, asked: Path) -> None:
        self._asked = asked
        self._told = asked.with_name(f"{asked.name}-reached")
        self._over = asked.with_name(f"{asked.name}-over")
        for path in (self._told, self._over):
            path.unlink(missing_ok=True)
        asked.touch()

    @property
    def reached(self) -> bool:
        """The log store has told so."""
        return self._told.exists()

    @property
    def outcome(self) -> str | None:
        """As the log store has it."""
        return (self._over.read_text().strip() or None) if self._over.exists() else None

    def release(self, *, lost: bool = False) -> None:
        """The dead do not go on anyhow."""
        del lost
        self._asked.unlink(missing_ok=True)


def compiled(folder: Path) -> Path:
    """A folder for `--jars` with the log store in a jar."""
    classes = java_sources.compiled(
        SOURCE, [*sorted((JARS / "delta").glob("*.jar")), OWN_JAR], folder / "classes"
    )
    jars = folder / "jars"
    jars.mkdir()
    with zipfile.ZipFile(jars / "held.jar", "w") as jar:
        for each in sorted(classes.rglob("*.class")):
            jar.write(each, each.relative_to(classes))
    return jars
