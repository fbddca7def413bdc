"""Stopped tasks whose former owner may wake up: their sinks are told before anybody resumes them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from definition.document import Definition
from definition.source import Source
from manager.core.commands import RemoveMember, ResetTask, SetTarget
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench
from worker.query_engine import QueryError, QuerySpec, ignore_step
from worker.sinks.errors import FencedError
from worker.sinks.factory import open_sink
from worker.sinks.fence import Owner
from worker.spark.launch import settle
from worker.spark.settings import SparkSettings
from worker.spark.starts import StartSteps

if TYPE_CHECKING:
    from definition.sink import Sink

SETTINGS = SparkSettings(app_name="tests", checkpoint_root="/nowhere", master="local")


class Backend(SimpleNamespace):
    """Knows of no query that a former owner has left."""

    def end_former(self, owner: Owner, checkpoint: str) -> None:
        self.ended = (owner.task, owner.token, checkpoint)


def begin(sink: Sink, token: int, resets: int = 0) -> None:
    """Raise the fence, as an owner does; whoever may do so may write."""
    opened = open_sink(sink, Owner("g", "t", token, resets))
    assert opened is not None
    try:
        opened.claim()
    finally:
        opened.close()


def settle_granted(sink: Sink, granted: Any, *, may_write: bool = True) -> Backend:
    """What a worker does about a grant that is not to run."""
    backend = Backend()
    definition = Definition(source=Source(format="rate"), sink=sink)
    spec = QuerySpec("g", "t", granted.token, definition, granted.reset)
    as_backend: Any = backend
    settle(as_backend, spec, SETTINGS, lambda: may_write, StartSteps(ignore_step))
    return backend


def rest(bench: Bench, worker: str, sink: Sink) -> None:
    """The worker is given the stopped task, and settles it."""
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    [granted] = bench.claim(worker, "t").answer.granted
    assert granted.target == "STOPPED"
    settle_granted(sink, granted)
    bench.report(worker, "t", granted.token, TaskState.STOPPED)


def test_nobody_of_before_writes_between_a_reset_and_its_resume(sink: Sink) -> None:
    """A person empties the sink meanwhile; rows of an owner that wakes up would be there twice in the end."""
    bench = Bench()
    zombie, worker = bench.herd(2, "t")
    old = bench.owner("t")[1]
    begin(sink, old)
    bench.ask(RemoveMember(member_id=zombie))
    bench.join(worker, kind="sparkherd")
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    bench.pass_time()
    number = bench.ask(ResetTask(task="t")).answer.reset.number
    begin(sink, old)  # whoever looks at the status sees that this can still be
    rest(bench, worker, sink)
    with pytest.raises(FencedError):
        begin(sink, old)
    with pytest.raises(FencedError):
        begin(sink, bench.owner("t")[1], resets=0)
    bench.ask(SetTarget(task="t", target=Target.RUNNING))
    bench.pass_time(1000)
    bench.redeal([worker], {"t": worker})
    [granted] = bench.claim(worker, "t").answer.granted
    begin(sink, granted.token, number)


def test_nobody_of_before_writes_for_a_task_that_was_stopped_after_its_owner_was_lost(sink: Sink) -> None:
    """It is stopped for good, and a frozen owner may wake up a day later."""
    bench = Bench()
    zombie, worker = bench.herd(2, "t")
    old = bench.owner("t")[1]
    begin(sink, old)
    bench.ask(RemoveMember(member_id=zombie))
    bench.ask(SetTarget(task="t", target=Target.STOPPED))
    rest(bench, worker, sink)
    with pytest.raises(FencedError):
        begin(sink, old)


def test_without_the_lease_nothing_is_settled(sink: Sink) -> None:
    """The task may be another worker's by now."""
    granted = SimpleNamespace(token=5, reset=None)
    with pytest.raises(QueryError, match="has lost its lease"):
        settle_granted(sink, granted, may_write=False)
    begin(sink, 1)


def test_what_a_former_owner_left_running_is_ended(sink: Sink) -> None:
    """After the fence is up, so that nothing of it is written meanwhile."""
    backend = settle_granted(sink, SimpleNamespace(token=5, reset=None))
    assert backend.ended == ("t", 5, SETTINGS.checkpoint("g", "t", 0))
