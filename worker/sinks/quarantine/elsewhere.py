"""A quarantine elsewhere: rows are put aside first, under a fence of their own, and then the others written.

Both are fenced sinks, and each of the two steps is done as a whole, once, and by the newest owner only. What
remains is a crash between them. Spark does the batch again then; the quarantine has it, and passes over it,
and the sink does not, and writes it. So no row is lost or there twice, if the same rows are put aside again:

- The batch is the same: its plan is part of the mark.
- What is done with it is the same: a digest of the definition, and of the sink's conditions that rows are put
  aside by, is part of the quarantine's mark. With another one, a batch that was left between the steps is
  refused.
- It comes out the same: a digest of the rows that are put aside is part of the mark, too. Where others would
  be put aside, as conditions may have it that hang on the time of day, the batch is refused.

A batch that the sink has was put aside before, or had nothing to be put aside: the quarantine is not asked.
docs/exactly-once.md has the whole of it; a test goes through every order of two owners' steps.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Self

from worker.sinks.base import Lookable, Sink
from worker.sinks.errors import OutOfOrderError, SinkError
from worker.sinks.fence import FenceRow, Mark, admits, rolled_back
from worker.sinks.quarantine.plan import rules_with
from worker.sinks.quarantine.rows import FIELDS, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.sinks.aside import Aside, Limits
    from worker.sinks.base import Batch, Condition, Field, SinkTask, Written
    from worker.sinks.fence import Owner
    from worker.sinks.parts import Rows


class QuarantinedSink(Sink):
    """A task's sink together with its quarantine elsewhere."""

    def __init__(
        self,
        sink: Sink,
        quarantine: Sink,
        owner: Owner,
        *,
        limits: Limits,
        rules: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is claimed yet.

        Args:
            sink: of the rows, opened for `owner`.
            quarantine: opened for `quarantine_owner(owner)`.
            owner: whose task it is.
            limits: how many rows of a batch may be put aside.
            rules: a digest of the definition.
            clock: the time, in seconds since 1970.
        """
        self._sink = sink
        self._quarantine = quarantine
        self._owner = owner
        self._limits = limits
        self._rules = rules
        self._clock = clock
        self._written: FenceRow | None = None
        self._put_aside: FenceRow | None = None
        self._is_clean = True

    @classmethod
    def open(cls, task: SinkTask) -> Self:
        """It is made of two that are open."""
        raise SinkError(f"{task.owner}: a quarantine is no format of its own")

    @property
    def place(self) -> str:
        """Both."""
        return f"{self._sink.place}, and for what is put aside {self._quarantine.place}"

    def claim(self) -> FenceRow:
        """Raise both fences; how far the task has come the sink says."""
        self._written = self._sink.claim()
        self._put_aside = self._quarantine.claim()
        return self._written

    def newest(self) -> FenceRow | None:
        """What the sink knows."""
        return self._sink.newest()

    def prepare(self, fields: Sequence[Field]) -> None:
        """Make both ready."""
        self._sink.prepare(fields)
        self._quarantine.prepare(FIELDS)

    def conditions(self) -> Sequence[Condition]:
        """Those of the sink."""
        return self._sink.conditions()

    def write(self, batch: Batch) -> Written:
        """Put rows aside, unless that was done, then write the others.

        What the sink is known to refuse is refused before it, which may compute a batch before it says so.
        """
        is_new = admits(self._written, self._owner, batch.mark)
        if isinstance(batch, Lookable):
            if is_new:
                put = partial(self._put_first, batch, batch.mark)
                batch.put_first(put, is_staged=self._sink.stages, is_clean=self._is_clean)
            else:
                batch.pass_over()
        written = self._sink.write(batch)
        if not (is_new or written.duplicate):
            raise SinkError(
                f"{self._owner}: batch {batch.mark.batch_id} was in {self._sink.place}, and is not"
            )
        if self._written is not None:
            self._written = replace(self._written, last=batch.mark, rows=written.total)
        return written

    def close(self) -> None:
        """Let go of both."""
        try:
            self._quarantine.close()
        finally:
            self._sink.close()

    def _put_first(self, batch: Lookable, mark: Mark, rows: Rows) -> None:
        """What comes before the sink's own step."""
        self._is_clean = not batch.aside
        self._limits.require(batch.aside, batch.left_out.quarantined, batch.rows, mark)
        if batch.aside:
            self._sink.check_rows(rows)
        self._put(batch.aside, batch, mark)

    def _put(self, aside: Sequence[Aside], batch: Lookable, mark: Mark) -> None:
        """Unless the quarantine has them, from before a crash; if there are none, it is to have none."""
        rules = rules_with(self._rules, batch.conditions)
        own = replace(mark, plan=f"{mark.plan or ''}/{rules}/{_digest(aside)}")
        if self._is_there(own) or not aside:
            return
        rows = rows_of(aside, self._owner, mark, int(self._clock() * 1_000_000))
        self._quarantine.write(batch.of_rows(rows, FIELDS, own))
        if self._put_aside is not None:
            self._put_aside = replace(self._put_aside, last=own)

    def _is_there(self, mark: Mark) -> bool:
        """Whether the quarantine has the batch.

        Raises:
            OutOfOrderError: it has another batch under that number, or this one by another definition, or
                other conditions of the sink, which put other rows aside.
        """
        last = None if self._put_aside is None else self._put_aside.last
        if last is None or (last.checkpoint, last.batch_id) != (mark.checkpoint, mark.batch_id):
            return False
        if last.plan is not None and last.plan != mark.plan:
            if _planned(last) != _planned(mark):
                raise rolled_back(self._owner, mark.batch_id, last)
            if _rules(last) == _rules(mark):
                raise OutOfOrderError(
                    f"{self._owner} has put rows of batch {mark.batch_id} aside, and not written the others;"
                    " now other rows would be put aside: what they hang on has another value each time, or a"
                    " static source was changed; reset the task"
                )
            raise OutOfOrderError(
                f"{self._owner} has put rows of batch {mark.batch_id} aside by another definition, or other"
                " constraints of the sink, and not written the others: bring the former ones back for that"
                " batch, or reset the task"
            )
        return True


def quarantine_owner(owner: Owner) -> Owner:
    """In whose name rows are put aside: the task's, beside its own, and not with every batch."""
    return replace(owner, task=f"{owner.task}~quarantine", skips=True)


def _planned(mark: Mark) -> str:
    return (mark.plan or "").rsplit("/", 2)[0]


def _rules(mark: Mark) -> str:
    return (mark.plan or "").rsplit("/", 2)[1]


def _digest(aside: Sequence[Aside]) -> str:
    """Of the rows that are put aside, in whatever order they come."""
    whole = sha256()
    for told in sorted(sha256(repr((row.names, row.form)).encode() + row.raw).digest() for row in aside):
        whole.update(told)
    return whole.hexdigest()[:12]
