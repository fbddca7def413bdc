"""The ways in which a task can harm its neighbours, as definitions, and what has to come of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Final

from protocol.states import TaskState
from tests.acceptance.harms.feed import ROWS_A_FILE
from tests.acceptance.harms.neighbours import EVERY, SMALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.harms.feed import Feed

NAME: Final = "harmful"
CODE: Final = "tests.acceptance.harms"
"""The prefix of the entry points."""
ACTION: Final = "quarantine"
"""Of a limit: what it does with a task that is not to be started again before somebody has looked."""
HUNG_S: Final = 20
STATE_ROWS: Final = 400_000
PYTHON_MB: Final = 400
LEAK_MB: Final = 4
"""With each batch, of which there is one a second."""
LEAKED_MB: Final = 300
LATER_S: Final = 60
"""When a task has been harmless for so long, nobody suspects it any more."""
RESTART: Final = {"max_restarts": 1, "window_ms": 1_200_000}
"""Few: one start of a JVM of its own takes a busy machine a minute."""
_TOO_LONG: Final = 600_000_000
"""Characters that no heap of these JVMs has room for."""


@dataclass(frozen=True)
class Place:
    """What a harmful task reads and writes, and whether it has a JVM of its own."""

    feed: Feed
    folder: Path
    isolate: bool

    @property
    def sink(self) -> dict[str, Any]:
        """A database of its own."""
        url = f"sqlite:///{self.folder / NAME}.db"
        return {"format": "sql", "options": {"url": url, "table": NAME}}

    def sql(self, text: str, **more: Any) -> dict[str, Any]:
        """A definition with a text of SQL."""
        return self._with({"source": self.feed.source, "sql": text, "sink": self.sink, **more})

    def code(self, name: str, **more: Any) -> dict[str, Any]:
        """A definition with an entry point that may write into the sink."""
        options = {"path": str(self.feed.folder), **more.pop("options", {})}
        entry = {"entrypoint": f"{CODE}.queries:{name}", "options": options, "fenced": True}
        return self._with({**entry, "sink": self.sink, **more})

    def _with(self, definition: dict[str, Any]) -> dict[str, Any]:
        return {"trigger": EVERY, "spark_conf": SMALL, "restart": RESTART, **definition}


class End(Enum):
    """What brings a harmful task to its end."""

    LIMIT = auto()
    """One of its definition."""
    DEATH = auto()
    """That of the JVMs that ran it."""
    FAILURE = auto()
    """Its own failures, one after another."""
    NONE = auto()
    """It may go on."""


@dataclass(frozen=True)
class Harm:
    """One way.

    Args:
        what: it is, for people.
        definition: of the task.
        end: what has to end it.
        flags: what workers are started with because of it.
        within_s: how long it may take until it has ended, or how long it is looked at if it goes on; by a
            quiet machine, in seconds.
    """

    what: str
    definition: Callable[[Place], dict[str, Any]]
    end: End
    flags: tuple[str, ...] = field(default=())
    within_s: float = 300.0

    @property
    def goes_on(self) -> bool:
        """Whether nothing has to end it."""
        return self.end is End.NONE

    @property
    def last_state(self) -> str:
        """The one that it has to come to."""
        return TaskState.RUNNING.value if self.goes_on else TaskState.FAILED.value

    def outlasts_restart(self, *, isolate: bool) -> bool:
        """Whether it is to stay in that state when its worker is started anew.

        Who has failed by itself is tried again by the next worker; with a JVM of its own, a death is that.
        """
        return self.end is End.LIMIT or (self.end is End.DEATH and not isolate)


def _out_of_memory(place: Place, first: int) -> dict[str, Any]:
    """From the row `first` on."""
    huge = f"CASE WHEN id >= {first} THEN length(repeat('x', {_TOO_LONG} + CAST(id AS INT))) ELSE 1 END"
    return place.sql(f"SELECT id, {huge} AS letters FROM source")


def _state(place: Place, rows_of_one: int, **more: Any) -> dict[str, Any]:
    """Each row of the feed is a number of keys, none of which comes a second time or is forgotten."""
    keys = f"SELECT explode(sequence(id * {rows_of_one}, (id + 1) * {rows_of_one} - 1)) AS key FROM source"
    sql = f"SELECT key, COUNT(*) AS n FROM ({keys}) GROUP BY key HAVING COUNT(*) > 1"
    return place.sql(sql, output_mode="update", **more)


def _hoard(place: Place) -> dict[str, Any]:
    """Where all tasks share a JVM, its worker's settings bound it."""
    return place.code("hoard", **({"memory": {"python_mb": PYTHON_MB}} if place.isolate else {}))


def _limited(name: str, most: float) -> dict[str, Any]:
    return {"limits": {name: {"max": most, "action": ACTION}}}


HARMS: Final = {
    "oom": Harm("its first batch runs the JVM out of memory", lambda at: _out_of_memory(at, 0), End.DEATH),
    "oom-later": Harm(
        f"a batch runs the JVM out of memory, after {LATER_S} s of good ones",
        lambda at: _out_of_memory(at, at.feed.rows + LATER_S * ROWS_A_FILE),
        End.DEATH,
        within_s=300 + LATER_S,
    ),
    "loop": Harm(
        f"a function of Python's never returns; limits.hung_s is {HUNG_S}",
        lambda at: at.code("loop", **_limited("hung_s", HUNG_S)),
        End.LIMIT,
    ),
    "state": Harm(
        f"its state grows without end; limits.state_rows is {STATE_ROWS:,}",
        lambda at: _state(at, 1000, **_limited("state_rows", STATE_ROWS)),
        End.LIMIT,
    ),
    "state-unlimited": Harm(
        "its state grows without end, and nothing limits it", lambda at: _state(at, 20_000), End.DEATH
    ),
    "logs": Harm(
        "a function of Python's prints 100 MB",
        lambda at: at.code("chatter", options={"from": at.feed.rows}),
        End.NONE,
        within_s=90,
    ),
    "java-logs": Harm(
        "100 MB are written into the log of the JVM",
        lambda at: at.code("java_chatter"),
        End.NONE,
        within_s=90,
    ),
    "python": Harm(
        f"a function of Python's takes all memory; each of its processes may have {PYTHON_MB} MiB, by"
        " memory.python_mb with a JVM of its own, else by spark.executor.pyspark.memory",
        _hoard,
        End.FAILURE,
        flags=("--spark-conf", f"spark.executor.pyspark.memory={PYTHON_MB}m"),
    ),
    "leak": Harm(
        f"keeps {LEAK_MB} MB more in the heap of its JVM each second; limits.heap_mb is {LEAKED_MB}",
        lambda at: at.code("leak", options={"mb": LEAK_MB}, **_limited("heap_mb", LEAKED_MB)),
        End.LIMIT,
        within_s=1200,
    ),
}
