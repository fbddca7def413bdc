"""The fence in the hands of an entry point, for side effects and databases that are its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from worker.sinks.errors import SinkError
from worker.sinks.fence import Owner
from worker.sinks.fence_rows import claim_fence, enter_fence

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection, Engine

    from worker.sinks.fence import FenceRow, Mark
    from worker.sinks.fence_table import FenceTable

_DIALECTS = {"sqlite", "postgresql"}
_NAME = re.compile(r"[A-Za-z0-9._-]{0,249}\Z")


class Fence:
    """Keeps the side effects of one task's batches from happening twice, as far as that can be.

    `check` asks this worker only: whether it still holds the task, as far as it knows. A worker that
    freezes right after it does harm all the same when it thaws. `guard` asks the database that is written
    to, inside the transaction that writes, and so cannot be wrong.
    """

    def __init__(
        self,
        owner: Owner,
        check: Callable[[], None],
        mark: Callable[[], Mark],
        claimed: Callable[[FenceRow], None],
        repeated: Callable[[], None] = lambda: None,
    ) -> None:
        """What the query it belongs to provides.

        Args:
            owner: the task, and the token it runs under.
            check: raises if the worker may not write any more.
            mark: tells which batch is being done.
            claimed: is told what a fence row said when it was raised.
            repeated: is called when the batch that is being done turns out to have been written before. The
                engine computes it then, though nobody wants its rows: a query with state cannot go on else.
        """
        self.owner = owner
        self._check = check
        self._mark = mark
        self._claimed = claimed
        self._repeated = repeated
        self._passed: set[tuple[Mark, str, str]] = set()

    @property
    def token(self) -> int:
        """The fencing token: it has grown since whoever ran the task before."""
        return self.owner.token

    def check(self) -> None:
        """Raise unless this worker still holds the task, as far as it knows."""
        self._check()

    def claim(self, engine: Engine, name: str = "") -> None:
        """Raise the fence in the database of `engine`, before the query reads anything.

        Not needed for `guard` to be right; but a former owner is refused sooner, and a lost or old checkpoint
        is noticed when the query starts and not at its first batch.

        Raises:
            FencedError: a newer owner has the task.
        """
        with engine.begin() as connection:
            self._claimed(_raise(connection, self._named(name))[1])

    def guard(self, connection: Connection, name: str = "") -> bool:
        """Whether to write the batch's rows in the transaction of `connection`; False if they are there.

        A batch that is there need not be computed by who asks: that is done once the function has returned.

        Moves the task's fence row in that same transaction, so that it and the rows are committed or
        neither. A batch may be guarded once, unless its transactions have a `name` each.

        Raises:
            FencedError: a newer owner has the task.
            OutOfOrderError: the batch does not follow the last one that was written under this guard.
            SinkError: it cannot guard this connection, or has guarded this batch before.
        """
        self._check()
        mark, owner = self._mark(), self._named(name)
        fence, _ = _raise(connection, owner)
        _require_transaction(connection)
        is_new, stored = fence.admit(connection, owner, mark)
        once = (mark, name, connection.engine.url.render_as_string())
        if not is_new:
            self._refuse_twice(once)
            self._repeated()
            return False
        fence.move(connection, owner, mark, stored.rows)
        self._passed = {each for each in self._passed if each[0] == mark} | {once}
        return True

    def _refuse_twice(self, once: tuple[Mark, str, str]) -> None:
        """What looks like a repetition was committed in this very run: rows would be left out."""
        if once in self._passed:
            raise SinkError(
                f"fence.guard was asked twice for batch {once[0].batch_id}: write all of a batch in one"
                " transaction, or give each its own name, as in fence.guard(connection, 'totals')"
            )

    def _named(self, name: str) -> Owner:
        if not _NAME.match(name):
            raise SinkError(
                f"fence.guard: the name {name!r} must be made of letters, digits and any of . _ -"
            )
        owner = self.owner
        task = f"{owner.task}/{name}" if name else owner.task
        return Owner(owner.group, task, owner.token, owner.resets)


def _raise(connection: Connection, owner: Owner) -> tuple[FenceTable, FenceRow]:
    """In a schema of the connection's `search_path`: two of those may be two places to write to."""
    dialect = connection.dialect.name
    if dialect not in _DIALECTS:
        raise SinkError(f"fence.guard knows {' and '.join(sorted(_DIALECTS))}, not {dialect}")
    return claim_fence(connection, owner, enter_fence(connection, owner, anywhere=False))


def _require_transaction(connection: Connection) -> None:
    """In autocommit the fence row and the rows would be committed one by one."""
    raw: Any = connection.connection.driver_connection
    info = getattr(raw, "info", None)
    status = getattr(info, "transaction_status", None) if info is not None else None
    is_open = bool(getattr(raw, "in_transaction", True)) if status is None else bool(status)
    if not is_open:
        raise SinkError("fence.guard needs a transaction; this connection commits each statement by itself")
