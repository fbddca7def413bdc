"""What any fenced sink has to keep, as tests: subclass `SinkContract` in a test module, and pytest runs them.

Nothing here needs pytest itself. Each test has places of its own, which nobody has written to before.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypeVar

from worker.sink_contract.batch import ContractBatch, StoppedBatch, StoppedError
from worker.sink_contract.race import Hold
from worker.sink_contract.steps import Crash, Steps, spread
from worker.sinks.base import Field, Sink, Written
from worker.sinks.errors import FencedError, OutOfOrderError, SinkError
from worker.sinks.fence import Mark, Owner

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from worker.sink_contract.batch import Row

E = TypeVar("E", bound=Exception)

PLACE = "out"
FIELDS = (Field("name", "string"), Field("number", "long"))
OTHERS = 20
NEXT = 3
"""The token of the owner that comes after the one that is held up."""


class SinkContract(ABC):
    """The promises of `worker.sinks.base.Sink`, each a test.

    Attributes:
        steps: in how many places of a sink's code it is ended, and in how many it is held up, by the two
            tests that do that; spread over all the lines that it runs.
        patience_s: how long, in seconds, an owner may wait for another that is held up, before that is taken
            to hold a lock, and let go on.
        is_shared: whether several tasks may write to one place.
    """

    steps: ClassVar[int] = 25
    patience_s: ClassVar[float] = 0.3
    is_shared: ClassVar[bool] = True
    session: SparkSession | None = None
    """For batches of sinks that write by Spark; to be set by a fixture."""

    @abstractmethod
    def open(self, owner: Owner, place: str) -> Sink:
        """A sink that nobody has claimed yet, for rows of `FIELDS`.

        Args:
            owner: who writes.
            place: a word; the same place for the same word within a test, and another one for another.
        """

    @abstractmethod
    def rows(self, place: str) -> list[Row]:
        """What is in a place, as a reader sees it, in any order."""

    def test_the_fence_is_up_before_anything_is_read(self) -> None:
        """A claim is known at once, to whoever asks; before it nobody is known."""
        assert self._opened(1).newest() is None
        row = self._opened(5).claim()
        assert (row.token, row.last, row.rows) == (5, None, 0)
        newest = self._opened(1).newest()
        assert newest is not None
        assert (newest.token, newest.last) == (5, None)
        assert self.rows(PLACE) == []

    def test_batches_follow_each_other(self) -> None:
        """Each is there as a whole, an empty one too, and all rows of the task are counted."""
        sink = self._claimed(1)
        assert self._write(sink, 0) == Written(2, 2)
        assert sink.write(self._batch(1, rows=())) == Written(0, 2)
        assert self._write(sink, 2) == Written(2, 4)
        self._has(0, 2)
        newest = self._opened(9).newest()
        assert newest is not None
        assert (newest.token, newest.last, newest.rows) == (1, self._batch(2).mark, 4)

    def test_a_lower_token_is_refused(self) -> None:
        """When it claims, and when it has claimed before and writes."""
        former = self._claimed(4)
        self._write(former, 0)
        self._claimed(7)
        _raises(FencedError, lambda: self._write(former, 1))
        _raises(FencedError, lambda: self._opened(6).claim())
        self._has(0)

    def test_the_same_owner_may_claim_again(self) -> None:
        """Behind Spark Connect the worker claims, and then the process that does the batches."""
        self._write(self._claimed(4), 0)
        again = self._opened(4)
        assert again.claim().last == self._batch(0).mark
        again.prepare(FIELDS)
        assert self._write(again, 1).total == 4
        self._has(0, 1)

    def test_a_batch_that_is_there_is_passed_over(self) -> None:
        """By its own owner and by the next one; its rows are computed all the same, for the query's state."""
        sink = self._claimed(1)
        self._write(sink, 0)
        self._passes_over(sink)
        self._passes_over(self._claimed(2))
        self._has(0)

    def test_a_gap_is_refused(self) -> None:
        """Before the first batch, and later."""
        sink = self._claimed(1)
        _raises(OutOfOrderError, lambda: self._write(sink, 1))
        self._write(sink, 0)
        _raises(OutOfOrderError, lambda: self._write(sink, 2))
        self._has(0)
        self._write(sink, 1)
        self._has(0, 1)

    def test_another_plan_is_refused(self) -> None:
        """A batch of the same number that was planned otherwise, an earlier one, or another checkpoint's."""
        self._write(self._claimed(1), 0)
        self._write(self._claimed(2), 1)
        sink = self._claimed(3)
        for other in (
            self._batch(1, plan="another"),
            self._batch(0),
            self._batch(1, checkpoint="another"),
            self._batch(2, checkpoint="another"),
        ):
            _raises(OutOfOrderError, partial(sink.write, other))
        self._has(0, 1)

    def test_a_reset_begins_anew(self) -> None:
        """From batch 0 of another checkpoint; rows that are there stay, and owners of before are refused."""
        former = self._claimed(9)
        self._write(former, 0)
        sink = self._opened(10, resets=1)
        row = sink.claim()
        assert (row.last, row.rows) == (None, 2)
        sink.prepare(FIELDS)
        _raises(FencedError, lambda: self._write(former, 1))
        _raises(FencedError, lambda: self._opened(11).claim())
        _raises(OutOfOrderError, lambda: sink.write(self._batch(1, checkpoint="new")))
        assert sink.write(self._batch(0, checkpoint="new")).total == 4
        self._has(0, 0)

    def test_a_quarantine_may_leave_numbers_out(self) -> None:
        """An owner that says so: batches of which no row is put aside never come there (`Owner.skips`).

        The first may have any number, and each other one any that is higher. All else is as for other owners.
        """
        former = self._skipping(1)
        assert self._write(former, 3) == Written(2, 2)
        assert self._write(former, 7) == Written(2, 4)
        sink = self._skipping(2)
        assert sink.write(self._batch(7)) == Written(0, 4, duplicate=True)
        _raises(FencedError, lambda: self._write(former, 9))
        for other in (self._batch(5), self._batch(7, plan="another"), self._batch(9, checkpoint="another")):
            _raises(OutOfOrderError, partial(sink.write, other))
        assert self._write(sink, 9).total == len(_rows(3, 7, 9))
        newest = self._opened(9).newest()
        assert newest is not None
        assert newest.last == self._batch(9).mark
        anew = self._skipping(3, resets=1)
        assert anew.write(self._batch(4, checkpoint="new")).total == len(_rows(3, 7, 9, 4))
        self._has(3, 4, 7, 9)

    def test_a_sink_that_stages_has_nothing_of_a_batch_that_is_stopped(self) -> None:
        """Its bad rows are put aside when it was computed; before that no row may count."""
        sink = self._claimed(1)
        if not sink.stages:
            return
        batch = self._batch(0)
        with suppress(StoppedError):
            sink.write(StoppedBatch(batch.mark, _rows(0), FIELDS, self.session))
            raise AssertionError("a sink that stages has its batches collected, scattered or saved")
        self._has()
        self._write(sink, 0)
        self._has(0)

    def test_nothing_is_written_unclaimed(self) -> None:
        """A sink that was opened and not claimed refuses to make ready, or to write."""
        sink = self._opened(1)

        def write() -> None:
            sink.prepare(FIELDS)
            self._write(sink, 0)

        _raises(SinkError, write)
        assert self.rows(PLACE) == []

    def test_tasks_of_one_place_leave_each_other_alone(self) -> None:
        """Each has a fence of its own: of another task, and of one of its name in another group."""
        if not self.is_shared:
            return
        others = (Owner("contract", "other", 1), Owner("other", "task", 2))
        self._write(self._claimed(5), 0)
        for count, owner in enumerate(others, 1):
            sink = self.open(owner, PLACE)
            assert sink.newest() is None
            assert sink.claim().last is None
            sink.prepare(FIELDS)
            assert self._write(sink, 0) == Written(2, 2)
            self._has(*[0] * (count + 1))
        assert self._claimed(6).claim().rows == 2

    def test_it_is_closed_twice(self) -> None:
        """Whoever gives up may have given up before."""
        sink = self._claimed(1)
        self._write(sink, 0)
        sink.close()
        sink.close()
        self._has(0)

    def test_a_crash_at_any_step(self) -> None:
        """Wherever its owner ends, the next one finds all of a batch or nothing, and goes on from there."""
        lines = self._lines(lambda: self._life("counted"))
        for step in spread(lines, self.steps):
            place = f"crash{step}"
            with suppress(Crash), Steps(self._package, step, _crash):
                self._life(place)
            self._goes_on(place, step)

    def test_two_owners_at_once(self) -> None:
        """Wherever the former one is held up in a batch, it cannot write it beside the next one.

        It may have written it and be refused all the same: where it asks once more whether it has, and the
        next one has come in between.
        """
        lines = self._lines(lambda: self._held("counted", Steps(self._package, 0, _crash)))
        for step in spread(lines, self.steps):
            place = f"held{step}"
            self._race(place, step, partial(self._held, place), partial(self._take_over, place))

    def test_two_claims_at_once(self) -> None:
        """Wherever the former one is held up in its claim, the next one stays the owner."""
        lines = self._lines(lambda: self._claims("counted", Steps(self._package, 0, _crash)))
        for step in spread(lines, self.steps):
            place = f"claim{step}"
            self._race(place, step, partial(self._held_claim, place), partial(self._take_over, place))

    def _passes_over(self, sink: Sink) -> None:
        batch = self._batch(0)
        assert sink.write(batch) == Written(0, 2, duplicate=True)
        assert batch.computed > 0

    def _life(self, place: str) -> None:
        """All that an owner does, from its claim to its second batch."""
        sink = self._claimed(1, place)
        self._write(sink, 0)
        self._write(sink, 1)

    def _goes_on(self, place: str, step: int) -> None:
        """What the next owner does: Spark repeats the batch after the last that it knows to be done."""
        sink = self._opened(2, place)
        last = sink.claim().last
        sink.prepare(FIELDS)
        for batch_id in range(0 if last is None else last.batch_id, 3):
            self._write(sink, batch_id)
        assert self._found(place) == _rows(0, 1, 2), f"after a crash at step {step}"

    def _held(self, place: str, steps: Steps) -> Written:
        sink = self._claimed(1, place)
        self._write(sink, 0)
        with steps:
            return self._write(sink, 1)

    def _race(
        self, place: str, step: int, held: Callable[[Steps], Written], over: Callable[[], Written]
    ) -> None:
        """Who is held up writes a batch, the next owner that one and another: each is there once."""
        hold = Hold()
        steps = Steps(self._package, step, hold)
        before, after = hold.race(lambda: held(steps), over, self.patience_s)
        at = f"held up at step {step}: {before}, {after}"
        assert isinstance(after, Written), at
        assert after.total == len(_rows(0, 1)), at
        assert isinstance(before, Written | Exception), at
        assert after.duplicate or isinstance(before, Exception), at
        assert self._found(place) == _rows(0, 1, 2), at
        newest = self._opened(9, place).newest()
        assert newest is not None
        assert newest.token == NEXT, at

    def _claims(self, place: str, steps: Steps) -> Sink:
        """A claim of token 2, where token 1 has written a batch."""
        self._write(self._claimed(1, place), 0)
        sink = self._opened(2, place)
        with steps:
            sink.claim()
        return sink

    def _held_claim(self, place: str, steps: Steps) -> Written:
        sink = self._claims(place, steps)
        sink.prepare(FIELDS)
        return self._write(sink, 1)

    def _take_over(self, place: str) -> Written:
        """What became of the batch that the former owner is at; another one follows."""
        sink = self._claimed(NEXT, place)
        written = self._write(sink, 1)
        self._write(sink, 2)
        return written

    def _lines(self, run: Callable[[], object]) -> int:
        """How many lines of the sink's own are run."""
        with Steps(self._package, 0, _crash) as steps:
            run()
        return steps.seen

    @property
    def _package(self) -> str:
        """The sink's own modules: those beside the one that its class is in."""
        module = type(self._opened(0, "counted")).__module__
        return module.rpartition(".")[0] or module

    def _opened(self, token: int, place: str = PLACE, *, resets: int = 0) -> Sink:
        return self.open(Owner("contract", "task", token, resets), place)

    def _claimed(self, token: int, place: str = PLACE) -> Sink:
        sink = self._opened(token, place)
        sink.claim()
        sink.prepare(FIELDS)
        return sink

    def _skipping(self, token: int, *, resets: int = 0) -> Sink:
        """One that has claimed, as a quarantine."""
        sink = self.open(Owner("contract", "task", token, resets, skips=True), PLACE)
        sink.claim()
        sink.prepare(FIELDS)
        return sink

    def _batch(
        self,
        batch_id: int,
        *,
        checkpoint: str = "checkpoint",
        plan: str = "as planned",
        rows: tuple[Row, ...] | None = None,
    ) -> ContractBatch:
        mark = Mark(checkpoint, batch_id, f"{plan} {batch_id}")
        return ContractBatch(mark, _rows(batch_id) if rows is None else list(rows), FIELDS, self.session)

    def _write(self, sink: Sink, batch_id: int) -> Written:
        return sink.write(self._batch(batch_id))

    def _found(self, place: str) -> list[Row]:
        return sorted(self.rows(place))

    def _has(self, *batch_ids: int) -> None:
        assert self._found(PLACE) == _rows(*batch_ids)


def _rows(*batch_ids: int) -> list[Row]:
    """Two a batch."""
    return sorted(
        row for each in batch_ids for row in ((f"batch {each}", each), (f"batch {each}", each + OTHERS))
    )


def _crash() -> None:
    raise Crash


def _raises(kind: type[E], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was not raised")
