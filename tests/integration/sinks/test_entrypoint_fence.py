"""`context.fence` in transactions of the user's own, on every database it knows."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa

from worker.sinks.entrypoint_fence import Fence
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import Mark, Owner

if TYPE_CHECKING:
    from worker.sinks.fence import FenceRow


class Worker:
    """A worker's fence for the task t, and the batch it is at."""

    def __init__(self, token: int) -> None:
        self.holds = True
        self.mark = Mark("c1", 0, "p0")
        self.claimed: list[FenceRow] = []
        self.fence = Fence(Owner("g", "t", token), self._check, lambda: self.mark, self.claimed.append)

    def _check(self) -> None:
        if not self.holds:
            raise RuntimeError("the lease is lost")

    def write(self, engine: sa.Engine, batch_id: int, *names: str) -> list[bool]:
        """A batch as a user writes it: a row for each name, in a transaction for each."""
        self.mark = Mark("c1", batch_id, f"p{batch_id}")
        return [self._write(engine, name) for name in names or ("",)]

    def _write(self, engine: sa.Engine, name: str) -> bool:
        with engine.begin() as connection:
            is_new = self.fence.guard(connection, name)
            if is_new:
                row = {"n": f"{name}{self.mark.batch_id}"}
                connection.execute(sa.text("INSERT INTO mine VALUES (:n)"), row)
            return is_new


@pytest.fixture
def mine(peek: Any) -> sa.Engine:
    """The user's engine, and a table of theirs."""
    peek.run("CREATE TABLE mine (n TEXT)")
    engine: sa.Engine = peek.engine
    return engine


def test_each_batch_is_written_once(mine: sa.Engine, peek: Any) -> None:
    """By whichever owner; the repetition is told as such, and no claim is needed beforehand."""
    worker = Worker(1)
    assert [worker.write(mine, n) for n in range(3)] == [[True], [True], [True]]
    successor = Worker(2)
    assert successor.write(mine, 2) == [False]
    assert successor.write(mine, 3) == [True]
    assert peek("SELECT n FROM mine ORDER BY n") == [("0",), ("1",), ("2",), ("3",)]


def _write_early(engine: sa.Engine, worker: Worker) -> None:
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO mine VALUES ('early')"))
        worker.fence.guard(connection)


def test_a_zombie_is_fenced(mine: sa.Engine, peek: Any) -> None:
    """Its transaction is undone as a whole, what it wrote before the guard included."""
    zombie, owner = Worker(1), Worker(2)
    zombie.write(mine, 0)
    owner.fence.claim(mine)
    assert owner.claimed[0].last == Mark("c1", 0, "p0")
    zombie.mark = Mark("c1", 1, "p1")
    with pytest.raises(FencedError, match="its token 1 is older than 2"):
        _write_early(mine, zombie)
    with pytest.raises(FencedError):
        zombie.fence.claim(mine)
    assert peek("SELECT n FROM mine") == [("0",)]


def test_a_transaction_that_is_undone_is_not_counted(mine: sa.Engine, peek: Any) -> None:
    """The fence row goes back with the rows, so the same batch may be tried again."""
    worker = Worker(1)
    with mine.connect() as connection:
        assert worker.fence.guard(connection)
        connection.rollback()
    assert worker.write(mine, 0) == [True]
    assert peek("SELECT n FROM mine") == [("0",)]


def test_two_transactions_need_two_names(mine: sa.Engine, peek: Any) -> None:
    """Otherwise the second would look like a repetition, and its rows would be left out without a word."""
    worker = Worker(1)
    with pytest.raises(SinkError, match="asked twice for batch 0"):
        worker.write(mine, 0, "", "")
    other = Worker(2)
    assert other.write(mine, 0) == [False]
    assert other.write(mine, 0, "a", "b") == [True, True]
    assert other.write(mine, 1, "", "a", "b") == [True, True, True]
    assert len(peek("SELECT n FROM mine")) == 6


def test_gaps_and_other_checkpoints(mine: sa.Engine, peek: Any) -> None:
    """The same rule as the sinks': what does not follow is an error."""
    worker = Worker(1)
    with pytest.raises(OutOfOrderError, match="is at batch 4, but the last batch in the sink is none"):
        worker.write(mine, 4)
    worker.write(mine, 0)
    worker.mark = Mark("c2", 0, "p0")
    with pytest.raises(OutOfOrderError, match="checkpoint c2"), mine.begin() as connection:
        worker.fence.guard(connection)
    assert peek("SELECT n FROM mine") == [("0",)]


def test_a_connection_that_commits_by_itself(mine: sa.Engine) -> None:
    """There the fence row would move without the rows."""
    if mine.dialect.name == "sqlite":
        autocommit = sa.create_engine(mine.url, connect_args={"isolation_level": None})
    else:
        autocommit = sa.create_engine(mine.url, isolation_level="AUTOCOMMIT")
    with pytest.raises(SinkError, match="needs a transaction"), autocommit.connect() as connection:
        Worker(1).fence.guard(connection)
    autocommit.dispose()


def test_a_lost_lease_comes_first(mine: sa.Engine, peek: Any) -> None:
    """Neither `check` nor `guard` lets a worker go on that knows it may not; the database is not touched."""
    worker = Worker(1)
    worker.fence.check()
    worker.holds = False
    with pytest.raises(RuntimeError, match="the lease is lost"):
        worker.fence.check()
    with pytest.raises(RuntimeError, match="the lease is lost"):
        worker.write(mine, 0)
    assert not sa.inspect(peek.engine).has_table("sparkherd_fence")


def test_names_are_checked(mine: sa.Engine) -> None:
    """A name is part of the fence row's key."""
    with pytest.raises(SinkError, match=r"the name 'a/b' must be made of"):
        Worker(1).write(mine, 0, "a/b")


def test_of_two_at_once_one_writes(mine: sa.Engine, peek: Any) -> None:
    """Two workers that do the same batch at the same time, one of them a zombie: it is there once."""
    start = threading.Barrier(2)
    told: list[object] = []

    def run(worker: Worker) -> None:
        start.wait()
        try:
            told.extend(worker.write(mine, 0))
        except FencedError as error:
            told.append(error)

    Worker(1).fence.claim(mine)
    threads = [threading.Thread(target=run, args=(Worker(token),)) for token in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert told.count(True) == 1
    assert len(told) == 2
    assert peek("SELECT n FROM mine") == [("0",)]
