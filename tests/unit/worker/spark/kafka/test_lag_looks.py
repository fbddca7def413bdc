"""Looks at the lag of tasks: how long they may take, and what is told then."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from protocol.messages.lag import TaskLag
from tests.fakes.turns import eventually
from worker.query_engine import QueryError
from worker.spark.kafka.lag_looks import LagLooks

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S = 30
FOUND = TaskLag(at_ms=1, rows=7)


class Store:
    """A place that does not answer until it is told to; counts who waits."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.over = threading.Event()
        self.looks = 0

    def look(self, at: Callable[[str], None]) -> TaskLag | None:
        """As a look at a task whose checkpoint is there."""
        self.looks += 1
        try:
            at("the checkpoint s3a://there")
            assert self.answers.wait(TIMEOUT_S)
            at("the brokers of source")
            return FOUND
        finally:
            self.over.set()


async def test_what_is_found_in_time_is_told() -> None:
    """So is what goes wrong."""

    def lost(_at: Callable[[str], None]) -> TaskLag | None:
        raise QueryError("Spark is not running")

    looks = LagLooks()
    assert await looks.run("t", lambda _: FOUND) == FOUND
    assert await looks.run("t", lambda _: None) is None
    with pytest.raises(QueryError, match="Spark is not running"):
        await looks.run("t", lost)


async def test_a_look_that_hangs_is_given_up_and_says_what_it_waited_for() -> None:
    """Other tasks are looked at; its own not again before its thread is free, which goes no further."""
    looks, store = LagLooks(0.01, lambda: 3.0), Store()
    told = await looks.run("t", store.look)
    waited = "a look at the lag was given up after 0.01 s: it was waiting for the checkpoint s3a://there"
    assert told == TaskLag(at_ms=3000, trouble=waited)
    assert await looks.run("t", store.look) == told
    assert store.looks == 1
    patient = LagLooks(TIMEOUT_S)
    assert await patient.run("u", lambda _: FOUND) == FOUND
    store.answers.set()
    assert await asyncio.to_thread(store.over.wait, TIMEOUT_S)
    await eventually(lambda: not looks._hanging)
    looks._limit_s = TIMEOUT_S
    assert await looks.run("t", store.look) == FOUND
