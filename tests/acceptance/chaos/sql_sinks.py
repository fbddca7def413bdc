"""The two databases of the sink `sql`: what is in them, and a hand on their locks."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from tests.acceptance.chaos.flows import FLIGHTS, WEATHER, Flow
from tests.acceptance.chaos.sinks import Sinks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgres": "LOCK TABLE sparkherd_fence IN ACCESS EXCLUSIVE MODE"}


class SqlSinks(Sinks):
    """SQLite and PostgreSQL, by their names in the flows; each airport has a mixture of its own."""

    def __init__(self, folder: Path, postgres: str, *, fenced: bool) -> None:
        """Without the fence, workers write in another way; the place is the same."""
        del fenced
        super().__init__(
            [
                Flow(FLIGHTS, "EWR", "sqlite", "append"),
                Flow(FLIGHTS, "JFK", "postgres", "append"),
                Flow(FLIGHTS, "LGA", "sqlite", "upsert"),
                Flow(WEATHER, "EWR", "postgres", "append"),
                Flow(WEATHER, "JFK", "sqlite", "append"),
                Flow(WEATHER, "LGA", "postgres", "upsert"),
            ]
        )
        self._urls = {"sqlite": f"sqlite:///{folder / 'sink.db'}", "postgres": postgres}
        readable = sa.make_url(postgres).set(drivername="postgresql+psycopg")
        self._engines = {
            "sqlite": sa.create_engine(self._urls["sqlite"], connect_args={"timeout": 60}),
            "postgres": sa.create_engine(readable),
        }

    def close(self) -> None:
        """Let go of them."""
        for engine in self._engines.values():
            engine.dispose()

    def definition(self, flow: Flow) -> dict[str, Any]:
        """One key has one row, where rows are counted."""
        options: dict[str, Any] = {"url": self._urls[flow.database], "table": flow.target}
        if flow.counts:
            options |= {"mode": flow.mode, "key": ["key"]}
        return {"format": "sql", "options": options}

    def arrived(self, flow: Flow) -> int:
        """As the database counts them."""
        what = "COALESCE(SUM(n), 0)" if flow.counts else "COUNT(DISTINCT id)"
        return int(self._asked(flow, what)[0][0])

    def rows(self, flow: Flow) -> Counter[tuple[int, str]]:
        """All of them."""
        return Counter((row.id, row.key) for row in self._asked(flow, "id, key"))

    def counts(self, flow: Flow) -> dict[str, tuple[int, int]]:
        """All of them."""
        return {row.key: (int(row.n), int(row.ids)) for row in self._asked(flow, "key, n, ids")}

    def summary(self) -> str:
        """Nothing but the rows."""
        return ""

    def asked(self, flow: Flow, query: str, **values: Any) -> list[Any]:
        """Of the flow's database."""
        with self._engines[flow.database].connect() as connection:
            return list(connection.execute(sa.text(query), values).all())

    def execute(self, flow: Flow, *statements: str, **values: Any) -> None:
        """In the flow's database, in one transaction."""
        with self._engines[flow.database].begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement), values)

    def _asked(self, flow: Flow, what: str) -> list[Any]:
        return self.asked(flow, f"SELECT {what} FROM {flow.target}")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody can write into either of them meanwhile; whoever wants to waits."""
        with ExitStack() as stack:
            for name, statement in _LOCKS.items():
                connection = stack.enter_context(self._engines[name].connect())
                connection.exec_driver_sql(statement)
                stack.callback(connection.rollback)
            yield
