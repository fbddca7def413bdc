"""The twenty tasks of the soak: a few of each kind that people run, and what has to come of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.soak.places import (
    WINDOW_S,
    Database,
    Fault,
    ids_of_delta,
    ids_of_files,
    of_counts,
    of_ids,
    of_windows,
    windows_of_files,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kafka.topic import Topic
    from tests.soak.feed import Feed

SCHEMA: Final = "id BIGINT, name STRING, at TIMESTAMP"
LATE: Final = {"column": "at", "delay": "5 minutes"}
OPEN_WINDOWS: Final = 300 // WINDOW_S + 2
"""Those within the watermark's delay, the one that is being filled, and the batch that Spark is behind."""
TRIGGER: Final = {"processing_time": "5 seconds"}


@dataclass(frozen=True)
class Kind:
    """One task: its definition, and what is wrong in its sink when `rows` rows were fed."""

    name: str
    definition: dict[str, Any]
    fault: Callable[[int], Fault]


@dataclass(frozen=True)
class Herd:
    """What the tasks read, and where they write."""

    feed: Feed
    topic: Topic
    folder: Path
    urls: dict[str, str]
    databases: dict[str, Database]

    def tasks(self) -> list[Kind]:
        """All twenty."""
        return [
            *[self._appended(n, where) for n, where in enumerate(["sqlite", "postgres", "postgres"])],
            *[self._counted(where, "update") for where in ("sqlite", "postgres")],
            self._counted("postgres", "complete"),
            *[self._in_windows(n) for n in (0, 1)],
            *[self._in_files(n) for n in (0, 1)],
            *[self._with_code(name, where) for name, where in _CODE],
            self._joined(),
            *[self._spoilt(where) for where in ("sqlite", "postgres")],
            self._of_kafka("sqlite"),
            self._into_delta("kafka", self._kafka()),
            self._into_delta("files", self._files()),
        ]

    def _files(self, **more: Any) -> dict[str, Any]:
        options = {"path": str(self.feed.clean), "maxFilesPerTrigger": 10}
        return {"format": "json", "schema": SCHEMA, "options": options, **more}

    def _kafka(self) -> dict[str, Any]:
        value = {"format": "json", "schema": SCHEMA}
        return self.topic.source(value=value, options={"maxOffsetsPerTrigger": 1000})

    def _table(self, where: str, table: str, **more: Any) -> dict[str, Any]:
        return {"format": "sql", "options": {"url": self.urls[where], "table": table, **more}}

    def _rows(self, name: str, where: str, definition: dict[str, Any]) -> Kind:
        """Each row once, into a table."""
        table = name.replace("-", "_")
        sink = {"sink": self._table(where, table), "trigger": TRIGGER, "spark_conf": _ONE_PARTITION}
        return Kind(name, {**definition, **sink}, lambda rows: of_ids(self.databases[where].ids(table), rows))

    def _appended(self, number: int, where: str) -> Kind:
        definition = {"source": self._files(), "sql": "SELECT id, name FROM source"}
        return self._rows(f"appended-{number}", where, definition)

    def _counted(self, where: str, mode: str) -> Kind:
        table = f"counted_{mode}"
        definition = {
            "source": self._files(),
            "sql": "SELECT name, COUNT(*) AS n FROM source GROUP BY name",
            "sink": self._table(where, table, mode="upsert", key=["name"]),
            "output_mode": mode,
            "trigger": TRIGGER,
            "spark_conf": _ONE_PARTITION,
        }
        return Kind(
            f"counted-{mode}-{where}",
            definition,
            lambda rows: of_counts(self.databases[where].counts(table), rows),
        )

    def _in_windows(self, number: int) -> Kind:
        place = self.folder / f"windows-{number}"
        definition = {
            "source": self._files(watermark=LATE),
            "sql": f"SELECT window.start AS start, COUNT(*) AS n FROM source"
            f" GROUP BY window(at, '{WINDOW_S} seconds')",
            "sink": {"format": "fenced_files", "options": {"path": str(place)}},
            "trigger": TRIGGER,
            "spark_conf": _ONE_PARTITION,
        }
        return Kind(
            f"windows-{number}",
            definition,
            lambda rows: of_windows(windows_of_files(place), rows, OPEN_WINDOWS),
        )

    def _in_files(self, number: int) -> Kind:
        place = self.folder / f"files-{number}"
        definition = {
            "source": self._files(),
            "sql": "SELECT id, name FROM source",
            "sink": {"format": "fenced_files", "options": {"path": str(place)}},
            "trigger": TRIGGER,
        }
        return Kind(f"files-{number}", definition, lambda rows: of_ids(ids_of_files(place), rows))

    def _with_code(self, name: str, where: str) -> Kind:
        definition = {
            "entrypoint": f"tests.soak.queries:{name}",
            "options": {"path": str(self.feed.clean)},
            "fenced": True,
        }
        return self._rows(f"{name.replace('_', '-')}-{where}", where, definition)

    def _joined(self) -> Kind:
        sources = {"a": self._files(watermark=LATE), "b": self._files(watermark=LATE)}
        sql = "SELECT a.id, a.name FROM a JOIN b ON a.id = b.id AND a.at = b.at"
        return self._rows("joined", "postgres", {"sources": sources, "sql": sql})

    def _spoilt(self, where: str) -> Kind:
        source = self._files(options={"path": str(self.feed.spoilt), "maxFilesPerTrigger": 10})
        definition = {
            "source": source,
            "sql": "SELECT id, name FROM source",
            "expect": [{"name": "numbered", "where": "id >= 0", "on_violation": "quarantine"}],
            "on_error": "quarantine",
        }
        kind = self._rows(f"spoilt-{where}", where, definition)
        return Kind(kind.name, kind.definition, partial(self._with_aside, kind, where))

    def _with_aside(self, kind: Kind, where: str, rows: int) -> Fault:
        lost, twice = kind.fault(rows)
        surplus = self.databases[where].put_aside(kind.name) - self.feed.bad
        return Fault(lost + max(-surplus, 0), twice + max(surplus, 0))

    def _of_kafka(self, where: str) -> Kind:
        return self._rows("kafka", where, {"source": self._kafka(), "sql": "SELECT id, name FROM source"})

    def _into_delta(self, name: str, source: dict[str, Any]) -> Kind:
        place = self.folder / f"delta-{name}"
        definition = {
            "source": source,
            "sql": "SELECT id, name FROM source",
            "sink": {"format": "delta", "options": {"path": str(place)}},
            "trigger": {"processing_time": "20 seconds"},
            "spark_conf": _ONE_PARTITION,
        }
        return Kind(f"delta-{name}", definition, lambda rows: of_ids(ids_of_delta(place), rows))


_ONE_PARTITION: Final = {"spark.sql.shuffle.partitions": "1"}
_CODE: Final = [
    ("distinct", "sqlite"),
    ("distinct", "postgres"),
    ("in_python", "sqlite"),
    ("in_python", "postgres"),
]
