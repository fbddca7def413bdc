"""Rows put aside elsewhere, and the others: each once, wherever an owner crashes or is overtaken."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tests.fakes.foreign_errors import RAISED, kind_of
from worker.left_out import LeftOut
from worker.sinks.aside import Aside, Limits
from worker.sinks.base import Condition, Sink, Written
from worker.sinks.errors import FencedError, OutOfOrderError, SchemaError, SinkError
from worker.sinks.fence import FenceRow, Mark, Owner, admits, raised
from worker.sinks.quarantine.elsewhere import QuarantinedSink, quarantine_owner

if TYPE_CHECKING:
    from collections.abc import Callable

STEPS = 10
"""Of an owner with three batches: two claims, then of each a look and a write, of two one more."""


@dataclass
class Place:
    """What outlives owners: a fence, and the rows behind it."""

    row: FenceRow = field(default_factory=lambda: FenceRow(0))
    rows: list[Any] = field(default_factory=list)


class CrashError(Exception):
    """The process is gone."""


class Memory(Sink):
    """A fenced sink over a place; each call is one step, and before it others may come."""

    def __init__(self, place: Place, owner: Owner, step: Callable[[], None]) -> None:
        self._there = place
        self._owner = owner
        self._step = step

    @classmethod
    def open(cls, task: Any) -> Any:
        raise NotImplementedError(task)

    @property
    def place(self) -> str:
        return "memory"

    def claim(self) -> FenceRow:
        self._step()
        self._there.row = raised(self._there.row, self._owner)
        return self._there.row

    def newest(self) -> FenceRow | None:
        return self._there.row

    def prepare(self, fields: Any) -> None:
        del fields

    def write(self, batch: Any) -> Written:
        self._step()
        batch.compute()
        return self.put(batch)

    def put(self, batch: Any) -> Written:
        if not admits(self._there.row, self._owner, batch.mark):
            return Written(0, self._there.row.rows, duplicate=True)
        self._there.rows += batch.good
        total = self._there.row.rows + len(batch.good)
        self._there.row = replace(self._there.row, last=batch.mark, rows=total)
        return Written(len(batch.good), total)

    def close(self) -> None:
        """Nothing is open."""


class Staging(Memory):
    """One that computes a batch before its step."""

    stages = True

    def write(self, batch: Any) -> Written:
        batch.compute()
        self._step()
        return self.put(batch)


@dataclass
class Rows:
    """A batch of rows that are good, of which none is left out."""

    mark: Mark
    good: list[Any]

    def compute(self) -> None:
        """Sinks do so with a batch that they have, too."""


@dataclass
class SomeBatch(Rows):
    """One whose bad rows are known when it was looked at, or was computed."""

    bad: tuple[Aside, ...] = ()
    step: Callable[[], None] = lambda: None
    aside: tuple[Aside, ...] = ()
    conditions: tuple[Condition, ...] = ()
    is_known: bool = False
    put: Callable[[list[Any]], None] | None = None
    told_clean: bool | None = None

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(quarantined=len(self.aside))

    @property
    def rows(self) -> int:
        return len(self.good) + len(self.aside)

    def put_first(self, put: Callable[[list[Any]], None], *, is_staged: bool, is_clean: bool) -> None:
        self.told_clean = is_clean
        self.put = put
        if not is_staged:
            self.find()

    def find(self) -> None:
        self.step()
        self.aside = self.bad
        self.is_known = True
        assert self.put is not None
        self.put(self.good)

    def pass_over(self) -> None:
        self.is_known = True

    def compute(self) -> None:
        if not self.is_known:
            self.find()

    def of_rows(self, rows: list[Any], fields: Any, mark: Mark) -> Rows:
        del fields
        return Rows(mark, [row[11] for row in rows])


class Herd:
    """The places of a task, and its owners, one newer than the other."""

    def __init__(self, kind: type[Memory]) -> None:
        self.sink, self.quarantine = Place(), Place()
        self.tokens = 0
        self.kind = kind

    def owner(self, step: Callable[[], None] = lambda: None, rules: str = "same", most: int = 10) -> Any:
        self.tokens += 1
        owner = Owner("g", "t", self.tokens)
        sink = self.kind(self.sink, owner, step)
        quarantine = Memory(self.quarantine, quarantine_owner(owner), step)
        made = QuarantinedSink(
            sink, quarantine, owner, limits=Limits(most, 1.0), rules=rules, clock=lambda: 1.0
        )
        setattr(made, "step", step)  # noqa: B010 - for the batches that it is given
        return made

    def go_on(self, made: Any) -> None:
        """With the last batch once more, as Spark does."""
        last = self.sink.row.last
        self.run(made, *range(0 if last is None else last.batch_id, 3))

    def run(self, made: Any, *numbers: int) -> None:
        made.claim()
        for number in numbers:
            made.write(batch(number, made.step))


@pytest.fixture(params=[Memory, Staging], ids=["looked at before", "in passing"])
def herd(request: pytest.FixtureRequest) -> Herd:
    """Over a sink that does not stage, and over one that does."""
    return Herd(request.param)


def batch(
    number: int,
    step: Callable[[], None] = lambda: None,
    plan: str = "planned",
    conditions: tuple[Condition, ...] = (),
) -> SomeBatch:
    """Batch 1 has nothing that is bad."""
    bad = () if number == 1 else (Aside("violation", ("a",), "a is violated", "row", b"bad%d" % number),)
    mark = Mark("c", number, f"{plan} {number}")
    return SomeBatch(mark, [f"good{number}"], bad, step, conditions=conditions)


def crashing(at: int) -> Callable[[], None]:
    """Ends a process before its nth step."""
    left = iter(range(at))

    def step() -> None:
        if next(left, None) is None:
            raise CrashError

    return step


def at_step(at: int, then: Callable[[], None]) -> Callable[[], None]:
    """Has somebody else come before the nth step."""
    count = iter(range(10_000))

    def step() -> None:
        if next(count) == at:
            then()

    return step


def overtaken() -> list[tuple[int, int]]:
    """At which step of the first owner the second comes, and at which of its own that one crashes."""
    return list(product(range(STEPS), range(STEPS)))


@pytest.mark.parametrize(("first", "second"), overtaken())
def test_every_crash_of_two_owners_leaves_each_row_once(first: int, second: int, herd: Herd) -> None:
    """A first one crashes, then a second one, and a third one does the batch."""
    for crash in (first, second):
        with suppress(CrashError):
            herd.go_on(herd.owner(crashing(crash)))
    herd.go_on(herd.owner())
    assert herd.sink.rows == ["good0", "good1", "good2"]
    assert herd.quarantine.rows == [b"bad0", b"bad2"]


@pytest.mark.parametrize(("first", "second"), overtaken())
def test_a_zombie_changes_nothing_at_whichever_step_it_is_overtaken(
    first: int, second: int, herd: Herd
) -> None:
    """By an owner that crashes itself, and by one that does not."""

    def takeover() -> None:
        with suppress(CrashError):
            herd.go_on(herd.owner(crashing(second)))
        herd.go_on(herd.owner())

    zombie = herd.owner(at_step(first, takeover))
    with pytest.raises(FencedError):
        herd.run(zombie, 0, 1, 2)
    assert herd.sink.rows == ["good0", "good1", "good2"]
    assert herd.quarantine.rows == [b"bad0", b"bad2"]


def test_a_batch_between_the_steps_is_not_done_by_another_definition(herd: Herd) -> None:
    """It would put other rows aside; with the former definition it is done, and then the new one goes on."""
    with pytest.raises(CrashError):
        herd.run(herd.owner(crashing(4)), 0)
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [b"bad0"])
    with pytest.raises(OutOfOrderError, match="by another definition"):
        herd.run(herd.owner(rules="other"), 0)
    herd.run(herd.owner(), 0)
    herd.run(herd.owner(rules="other"), 1, 2)
    assert herd.sink.rows == ["good0", "good1", "good2"]


def test_a_batch_between_the_steps_that_comes_out_otherwise_is_refused(herd: Herd) -> None:
    """By the same definition: a condition on what is another value each time, or a static source."""
    with pytest.raises(CrashError):
        herd.run(herd.owner(crashing(4)), 0)
    made = herd.owner()
    made.claim()
    again = batch(0)
    again.bad = (*again.bad, Aside("violation", ("a",), "a is violated", "row", b"good0"))
    again.good = []
    with pytest.raises(OutOfOrderError, match="now other rows would be put aside"):
        made.write(again)
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [b"bad0"])


def test_another_plan_of_a_batch_between_the_steps_is_refused(herd: Herd) -> None:
    """By the quarantine's own fence: it is another batch, of a checkpoint that was changed."""
    with pytest.raises(CrashError):
        herd.run(herd.owner(crashing(4)), 0)
    made = herd.owner()
    made.claim()
    for bad in ((), batch(0).bad):
        another = batch(0, plan="another")
        another.bad = bad
        with pytest.raises(OutOfOrderError, match="older copy"):
            made.write(another)
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [b"bad0"])


def test_a_definition_that_puts_nothing_aside_does_not_do_a_batch_between_the_steps(herd: Herd) -> None:
    """It would write a row that was put aside."""
    with pytest.raises(CrashError):
        herd.run(herd.owner(crashing(4)), 0)
    made = herd.owner(rules="other")
    made.claim()
    without = batch(0)
    without.bad, without.good = (), ["good0", "bad0"]
    with pytest.raises(OutOfOrderError, match="by another definition"):
        made.write(without)
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [b"bad0"])


def test_a_batch_between_the_steps_is_not_done_by_other_conditions_of_the_sink(herd: Herd) -> None:
    """A constraint that the table got meanwhile, or lost, would put other rows aside."""
    positive = Condition("positive", "id > 0")
    made = herd.owner(crashing(4))
    made.claim()
    with pytest.raises(CrashError):
        made.write(batch(0, made.step, conditions=(positive,)))
    assert herd.quarantine.rows == [b"bad0"]
    for others in ((), (positive._replace(where="id > 1"),), (positive, positive)):
        made = herd.owner()
        made.claim()
        with pytest.raises(OutOfOrderError, match="or other constraints of the sink"):
            made.write(batch(0, conditions=others))
    made = herd.owner()
    made.claim()
    made.write(batch(0, conditions=(positive,)))
    assert (herd.sink.rows, herd.quarantine.rows) == (["good0"], [b"bad0"])


def test_a_batch_that_the_sink_has_puts_nothing_aside_by_another_definition(herd: Herd) -> None:
    """Nor does it ask the quarantine."""
    herd.run(herd.owner(), 0, 1)
    made = herd.owner(rules="other")
    made.claim()
    again = batch(1)
    again.bad = (Aside("violation", ("b",), "b is violated", "row", b"new"),)
    assert made.write(again).duplicate
    assert herd.quarantine.rows == [b"bad0"]


def test_too_many_rows_fail_the_batch_before_anything_is_put_aside(herd: Herd) -> None:
    """Nor is anything written."""
    made = herd.owner(most=0)
    made.claim()
    with pytest.raises(SinkError, match="max_quarantined_per_batch"):
        made.write(batch(0))
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [])


def test_a_row_that_no_place_holds_fails_the_batch_before_anything_is_put_aside(herd: Herd) -> None:
    """Else a definition without that row would be refused, for the batch were between the steps."""
    made = herd.owner()
    made.claim()
    bad = batch(0)
    made._sink.check_rows = _refusing
    with pytest.raises(SchemaError, match="NULL"):
        made.write(bad)
    assert (herd.sink.rows, herd.quarantine.rows) == ([], [])
    herd.run(herd.owner(rules="mended"), 0)
    assert herd.quarantine.rows == [b"bad0"]


def _refusing(rows: list[Any]) -> None:
    assert rows
    raise SchemaError("the key is NULL")


def test_an_older_copy_of_the_checkpoint_puts_nothing_aside(herd: Herd) -> None:
    """The sink refuses it, and is asked first."""
    herd.run(herd.owner(), 0, 1, 2)
    made = herd.owner()
    made.claim()
    with pytest.raises(OutOfOrderError, match="older copy"):
        made.write(batch(2, plan="another"))
    assert herd.quarantine.rows == [b"bad0", b"bad2"]


def test_batches_that_have_nothing_to_put_aside_may_be_between() -> None:
    """Numbers are left out in a quarantine, and nowhere else."""
    owner = Owner("g", "t", 1)
    row = FenceRow(1, last=Mark("c", 3, "p"))
    assert admits(row, quarantine_owner(owner), Mark("c", 7, "p"))
    assert admits(FenceRow(1), quarantine_owner(owner), Mark("c", 7, "p"))
    with pytest.raises(OutOfOrderError):
        admits(row, owner, Mark("c", 7, "p"))


def test_a_batch_is_told_whether_the_one_before_had_nothing_to_put_aside(herd: Herd) -> None:
    """By that it is looked at in passing or before; the first one may be clean."""
    made = herd.owner()
    made.claim()
    batches = [batch(number) for number in range(3)]
    for each in batches:
        made.write(each)
    assert [each.told_clean for each in batches] == [True, False, True]


@pytest.mark.parametrize("error", RAISED, ids=kind_of)
def test_both_are_closed_whatever_becomes_of_the_quarantine(error: BaseException) -> None:
    """Each start would leave a connection open."""

    def fails() -> None:
        raise error

    closed: list[str] = []
    rows: Any = SimpleNamespace(close=lambda: closed.append("rows"))
    quarantine: Any = SimpleNamespace(close=fails)
    with pytest.raises(type(error)):
        QuarantinedSink(rows, quarantine, Owner("g", "t", 1), limits=Limits(1, 1.0), rules="").close()
    assert closed == ["rows"]
