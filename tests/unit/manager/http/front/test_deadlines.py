"""Time limits that share one timer, on a loop whose clock is moved by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from manager.http.front.deadlines import Deadlines
from tests.unit.manager.http.front.loop import Loop

if TYPE_CHECKING:
    from collections.abc import Callable

SECONDS = 30


@pytest.fixture(autouse=True)
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr("manager.http.front.deadlines.asyncio.get_running_loop", lambda: made)
    return made


@pytest.fixture
def late() -> list[str]:
    """What was overdue, in order."""
    return []


@pytest.fixture
def deadlines(late: list[str]) -> Deadlines[str]:
    return Deadlines(SECONDS, late.append)


def test_each_has_its_own_time(loop: Loop, deadlines: Deadlines[str], late: list[str]) -> None:
    """To the second, though one timer serves them all."""
    deadlines.start("first")
    loop.move(10)
    deadlines.start("second")
    deadlines.start("third")
    assert len(loop.timers) == 1
    loop.move(19)
    assert late == []
    loop.move(1)
    assert late == ["first"]
    loop.move(9)
    assert late == ["first"]
    loop.move(1)
    assert late == ["first", "second", "third"]
    assert loop.timers == []


@pytest.mark.parametrize(
    ("change", "left"), [(Deadlines.stop, ["second"]), (Deadlines.start, ["second", "first"])]
)
def test_what_is_stopped_or_started_again_waits_no_longer_or_anew(
    loop: Loop,
    deadlines: Deadlines[str],
    late: list[str],
    change: Callable[[Deadlines[str], str], None],
    left: list[str],
) -> None:
    """Behind all that were started before."""
    deadlines.start("first")
    deadlines.start("second")
    loop.move(10)
    change(deadlines, "first")
    assert ("first" in deadlines) == ("first" in left)
    loop.move(20)
    assert late == ["second"]
    loop.move(10)
    assert late == left
    assert "first" not in deadlines


def test_what_is_overdue_may_be_started_again_there_and_then(loop: Loop) -> None:
    """As a reader is that has taken something."""
    heard: list[float] = []

    def again(one: str) -> None:
        heard.append(loop.now)
        readers.start(one)

    readers = Deadlines(SECONDS, again)
    readers.start("slow")
    loop.move(SECONDS)
    loop.move(SECONDS)
    assert heard == [30, 60]
    assert len(loop.timers) == 1


def test_one_that_raises_keeps_no_other_from_its_end(loop: Loop) -> None:
    """The loop reports it, and goes on."""

    def raising(one: str) -> None:
        raise RuntimeError(one)

    connections = Deadlines(SECONDS, raising)
    for name in ("first", "second"):
        connections.start(name)
    loop.move(SECONDS)
    assert [str(error) for error in loop.reported] == ["first", "second"]


def test_those_that_are_due_do_not_wait_for_each_other(loop: Loop, deadlines: Deadlines[str]) -> None:
    """One look ends a thousand: a busy loop may take long to come back to the next."""
    for number in range(1000):
        deadlines.start(str(number))
    loop.move(SECONDS)
    assert loop.looks == 1
