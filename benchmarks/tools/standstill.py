"""How long tasks stand still when they move, seen from outside: by what a database knows of their batches."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOOK_S: Final = 0.01
"""From one look to the next; a gap is known that closely."""

ProgressRow = tuple[str, int, int | None]
"""A task, the token it runs under, and the last batch that was written for it."""


class Gap(NamedTuple):
    """A task's standstill, in seconds: from the last batch under one token to the first under a later one."""

    task: str
    seconds: float


class LastBatch(NamedTuple):
    """The last one seen of a task, and when."""

    token: int
    batch_id: int
    at: float


@dataclass(slots=True)
class Standstills:
    """Takes in what a table of progress shows, look by look, and finds the gaps. Its methods need no lock."""

    last: dict[str, LastBatch] = field(default_factory=dict)
    gaps: list[Gap] = field(default_factory=list)

    def look(self, rows: Iterable[ProgressRow], at: float) -> None:
        """What is there at the time `at`, in seconds. A token that was raised is no batch yet."""
        for task, token, batch_id in rows:
            last = self.last.get(task)
            if batch_id is None or (last is not None and last.batch_id == batch_id):
                continue
            if last is not None and token > last.token:
                self.gaps.append(Gap(task, at - last.at))
            self.last[task] = LastBatch(token, batch_id, at)


class Watch:
    """What has been seen so far; for any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._seen = Standstills()

    def look(self, rows: Iterable[ProgressRow], at: float) -> None:
        """As `Standstills.look`."""
        with self._lock:
            self._seen.look(rows, at)

    def taken(self) -> list[Gap]:
        """The gaps since it was last asked."""
        with self._lock:
            gaps, self._seen.gaps = self._seen.gaps, []
            return gaps

    def tokens(self) -> dict[str, int]:
        """Under which token each task has written last."""
        with self._lock:
            return {task: last.token for task, last in self._seen.last.items()}


@contextmanager
def watching(database: str, table: str) -> Iterator[Watch]:
    """Look at the columns `task`, `token` and `batch_id` of a table that is there, until the block ends."""
    watch, is_over = Watch(), Event()
    with psycopg.connect(database, autocommit=True) as connection:
        thread = Thread(target=_watch, args=(connection, table, watch, is_over), daemon=True)
        thread.start()
        try:
            yield watch
        finally:
            is_over.set()
            thread.join()


def _watch(connection: psycopg.Connection, table: str, watch: Watch, is_over: Event) -> None:
    query = psycopg.sql.SQL("SELECT task, token, batch_id FROM {}").format(psycopg.sql.Identifier(table))
    while not is_over.wait(LOOK_S):
        watch.look(connection.execute(query).fetchall(), monotonic())
