"""What the tests of the sinks share: batches without Spark, databases that are real."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from definition.sink import Sink
from definition.sinks.sql import SqlOptions
from worker.sinks.base import Field
from worker.sinks.fence import Mark, Owner
from worker.sinks.sql import SqlSink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sqlalchemy import Connection

    from tests.integration.postgres import Server
    from worker.sinks.parts import Part, Rows, Take

FLIGHT = (Field("carrier", "string"), Field("delay", "double"))
_numbers = itertools.count()


class ListBatch:
    """A batch whose partitions are lists; like Spark's, they travel, and may be tried several times.

    `tries` says how often each partition is tried; the last attempt counts. `collects` is whether its engine
    has a cheap way for small ones.
    """

    collects = True

    def __init__(
        self,
        batch_id: int,
        *partitions: Rows,
        checkpoint: str = "c1",
        plan: str = "as planned",
        tries: int = 1,
    ) -> None:
        self.mark = Mark(checkpoint, batch_id, f"{plan} {batch_id}")
        self.computed = 0
        self.before_computing: Callable[[], object] = lambda: None
        self.before_return: Callable[[], object] = lambda: None
        self.before_going_on: Callable[[], object] = lambda: None
        self._partitions: Sequence[Rows] = partitions
        self._tries = tries

    @property
    def partitions(self) -> int:
        return len(self._partitions)

    def check(self) -> None:
        """As a test has it: `before_going_on` may raise."""
        self.before_going_on()

    def collect(self, limit: int) -> Rows | None:
        """What is too much is not counted as computed."""
        rows = [row for partition in self._partitions for row in partition]
        if not self.collects or len(rows) > limit:
            return None
        self.before_computing()
        self.computed += len(rows)
        self.before_return()
        return rows

    def scatter(self, take: Take) -> list[Part]:
        """Each attempt has a copy of `take`, as executors have."""
        self.before_computing()
        parts = []
        for index, rows in enumerate(self._partitions):
            for _ in range(self._tries):
                part = pickle.loads(pickle.dumps(take))(index, next(_numbers), iter(rows))
            parts.append(part)
            self.computed += len(rows)
        self.before_return()
        return parts

    def save(self, file_format: str, folder: str) -> int:
        """A file for each attempt's partition that counts, named and marked as Spark does."""
        self.before_computing()
        place = Path(folder.removeprefix("file://"))
        place.mkdir(parents=True)
        for index, rows in enumerate(self._partitions):
            lines = "".join(f"{json.dumps(row)}\n" for row in rows)
            (place / f"part-{index}.{file_format}").write_text(lines)
        (place / "_SUCCESS").touch()
        self.computed += sum(map(len, self._partitions))
        self.before_return()
        return self.computed

    def discard(self) -> None:
        self.computed += sum(map(len, self._partitions))


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A fresh, empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'out.db'}"
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.new_database("postgresql")
    yield url
    server.drop(url)


@pytest.fixture(params=["files", "sqlite", "postgresql"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> Sink:
    """A definition's sink of each kind that has a fence; nobody has ever written to it."""
    if request.param == "files":
        return Sink(format="fenced_files", options={"path": str(tmp_path / "out")})
    url = f"sqlite:///{tmp_path / 'out.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres").new_database("postgresql")
    return Sink(format="sql", options={"url": url, "table": "out"})


class Peek:
    """Looks into the database past the sink."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        driver = "postgresql+psycopg" if parsed.get_backend_name() == "postgresql" else "sqlite"
        self.engine = sa.create_engine(parsed.set(drivername=driver))

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.exec_driver_sql(sql)]

    def run(self, *statements: str) -> None:
        with self.engine.begin() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)

    def begin(self) -> Connection:
        """A connection inside a transaction; to be closed by the test."""
        connection = self.engine.connect()
        connection.begin()
        return connection

    def leftovers(self) -> list[str]:
        """The names of all staging areas."""
        if self.engine.dialect.name == "postgresql":
            return [
                row[0] for row in self("SELECT tablename FROM pg_tables WHERE tablename LIKE '%%_stage_%%'")
            ]
        return sorted(path.name for path in Path(f"{self.engine.url.database}-sparkherd").glob("*"))


@pytest.fixture
def peek(url: str) -> Iterator[Peek]:
    peek = Peek(url)
    yield peek
    peek.engine.dispose()


@pytest.fixture
def open_sink(url: str) -> Iterator[Callable[..., SqlSink]]:
    """A sink that has not claimed anything yet; closed when the test is over."""
    opened = []

    def make(token: int, *, resets: int = 0, task: str = "t", **options: Any) -> SqlSink:
        sink = SqlSink(
            SqlOptions(**{"url": url, "table": "delays", **options}), Owner("g", task, token, resets)
        )
        opened.append(sink)
        return sink

    yield make
    for sink in opened:
        sink.close()


@pytest.fixture
def make_sink(open_sink: Callable[..., SqlSink]) -> Callable[..., SqlSink]:
    """A claimed and prepared sink for a token."""

    def make(token: int, fields: tuple[Field, ...] = FLIGHT, **options: Any) -> SqlSink:
        sink = open_sink(token, **options)
        sink.claim()
        sink.prepare(fields)
        return sink

    return make


@pytest.fixture
def batch() -> type[ListBatch]:
    return ListBatch
