from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from worker.isolation.messages import Answer, MayWrite
from worker.isolation.remote_lease import FRESH_S, RemoteLease

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Worker:
    """Answers as the test has it, by a clock of the test's."""

    def __init__(self, answers: Iterable[bool] = (), takes_s: float = 0.0) -> None:
        self.asked: list[int] = []
        self.now = 0.0
        self._answers = iter(answers)
        self._takes_s = takes_s
        self.lease: RemoteLease | None = None

    def ask(self, question: MayWrite) -> None:
        self.asked.append(question.number)
        answer = next(self._answers, None)
        if answer is not None and self.lease is not None:
            self.now += self._takes_s
            self.lease.answered(Answer(question.number, answer))


def lease_of(worker: Worker, answer_s: float = 60.0) -> Callable[[], bool]:
    worker.lease = RemoteLease(worker.ask, lambda: worker.now, answer_s)
    return worker.lease.may_write


@pytest.mark.parametrize("answer", [True, False])
async def test_the_worker_says_whether_it_may_write(*, answer: bool) -> None:
    """Each time anew."""
    worker = Worker((answer, not answer))
    may_write = lease_of(worker)
    assert [await asyncio.to_thread(may_write) for _ in range(2)] == [answer, not answer]
    assert worker.asked == [0, 1]


async def test_no_answer_means_no() -> None:
    """A worker that is frozen or dead has no tasks; what it says later is not taken for another answer."""
    worker = Worker()
    may_write = lease_of(worker, answer_s=0.01)
    assert not await asyncio.to_thread(may_write)
    assert worker.lease is not None
    worker.lease.answered(Answer(0, may_write=True))
    worker.lease.answered(Answer(0, may_write=True))


async def test_an_old_answer_is_asked_for_again() -> None:
    """Whoever asks may have been frozen between the worker's word and reading it."""
    worker = Worker((True, False), takes_s=2 * FRESH_S)
    assert not await asyncio.to_thread(lease_of(worker))
    assert worker.asked == [0, 1]


async def test_old_answers_come_to_an_end() -> None:
    """With answers that are always old nothing is written."""
    worker = Worker([True] * 100, takes_s=2 * FRESH_S)
    assert not await asyncio.to_thread(lease_of(worker, answer_s=10.0))
    assert len(worker.asked) == 5
