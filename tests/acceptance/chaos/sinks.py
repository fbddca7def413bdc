"""The two databases of the chaos run: what is in them, and a hand on their locks."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.acceptance.chaos.flows import Flow


@dataclass(frozen=True, slots=True)
class Balance:
    """Rows of the sources that are not in the sinks, and rows that are there again, or were never fed."""

    lost: int = 0
    twice: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.lost + other.lost, self.twice + other.twice)


class Sinks:
    """SQLite and PostgreSQL, by their names in the flows."""

    def __init__(self, folder: Path, postgres: str) -> None:
        self.urls = {"sqlite": f"sqlite:///{folder / 'sink.db'}", "postgres": postgres}
        readable = sa.make_url(postgres).set(drivername="postgresql+psycopg")
        self._engines = {
            "sqlite": sa.create_engine(self.urls["sqlite"], connect_args={"timeout": 60}),
            "postgres": sa.create_engine(readable),
        }

    def close(self) -> None:
        """Let go of them."""
        for engine in self._engines.values():
            engine.dispose()

    def has_all_of(self, flow: Flow) -> bool:
        """Whether all rows that were fed have arrived; one that is there twice stands for no other."""
        what = "COALESCE(SUM(n), 0)" if flow.counts else "COUNT(DISTINCT id)"
        with self._engines[flow.database].connect() as connection:
            statement = f"SELECT {what} FROM {flow.target}"
            return int(connection.exec_driver_sql(statement).scalar_one()) >= len(flow.fed)

    def balance(self, flow: Flow) -> Balance:
        """Each row, or each key's count, against what was fed."""
        return _of_counts(self._counts(flow), flow) if flow.counts else _of_rows(self._rows(flow), flow)

    def _rows(self, flow: Flow) -> Counter[tuple[int, str]]:
        with self._engines[flow.database].connect() as connection:
            found = connection.exec_driver_sql(f"SELECT id, key FROM {flow.target}").all()
        return Counter((row.id, row.key) for row in found)

    def _counts(self, flow: Flow) -> dict[str, tuple[int, int]]:
        with self._engines[flow.database].connect() as connection:
            found = connection.exec_driver_sql(f"SELECT key, n, ids FROM {flow.target}").all()
        return {row.key: (int(row.n), int(row.ids)) for row in found}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody can write into either of them meanwhile; whoever wants to waits."""
        with ExitStack() as stack:
            for name, statement in _LOCKS.items():
                connection = stack.enter_context(self._engines[name].connect())
                connection.exec_driver_sql(statement)
                stack.callback(connection.rollback)
            yield


_LOCKS = {"sqlite": "BEGIN IMMEDIATE", "postgres": "LOCK TABLE sparkherd_fence IN ACCESS EXCLUSIVE MODE"}


def _of_rows(found: Counter[tuple[int, str]], flow: Flow) -> Balance:
    fed = Counter(enumerate(flow.fed))
    return Balance(lost=(fed - found).total(), twice=(found - fed).total())


def _of_counts(found: Mapping[str, tuple[int, int]], flow: Flow) -> Balance:
    """The sum of the rows' numbers shows what equal counts of other rows would hide."""
    balance = Balance()
    for key in {*flow.fed, *found}:
        numbers = [number for number, fed_key in enumerate(flow.fed) if fed_key == key]
        count, total = found.get(key, (0, 0))
        surplus = count - len(numbers)
        swapped = int(surplus == 0 and total != sum(numbers))
        balance += Balance(lost=max(-surplus, 0) + swapped, twice=max(surplus, 0) + swapped)
    return balance
