"""Heaps that grow with a task: what is told of it, and what its definition wants done then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from manager.core.commands import DeleteTask, DescribeGroup, GetTaskStatus, PutTask, RestartTask, SetTarget
from protocol.messages.events import EventType
from protocol.messages.membership import EngineEnd
from protocol.messages.ownership import ReportRequest
from protocol.messages.resources import WorkerResources
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import Bench, definition

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 2**20
LIMITED = "limits.heap_mb: the heap of"


class Workers:
    """Tell each five seconds what a collection has left of a heap of 1 GiB."""

    def __init__(self, bench: Bench, *ids: str) -> None:
        self.bench = bench
        self.kept = dict.fromkeys(ids, 100.0)
        self._looks = 0

    def run(self, minutes: float, grow: Mapping[str, float], **resources: Any) -> None:
        """`grow` is by worker, in MiB a minute; ends when the workers are called together."""
        for _ in range(int(minutes * 12)):
            if self.bench.state != "Stable":
                return
            self.bench.pass_time(5_000 if self._looks else 0)
            self._looks += 1
            for member_id in self.kept:
                self.kept[member_id] += grow.get(member_id, 0.0) / 12
                self.tell(member_id, **resources)

    def tell(self, member_id: str, **resources: Any) -> None:
        """What it has now; a byte more or less is another collection."""
        low = int(self.kept[member_id] * MIB) + self._looks % 2
        told = {"heap_max_bytes": 1024 * MIB, "heap_live_bytes": low} | resources
        self.bench.ask(ReportRequest(member_id=member_id, tasks=(), resources=WorkerResources(**told)))


def put(bench: Bench, task: str, **limits: Any) -> None:
    """A task with these limits."""
    bench.ask(PutTask(task=task, definition=definition(limits=limits)))


def status(bench: Bench, task: str) -> Any:
    """As admins see it."""
    return bench.ask(GetTaskStatus(task=task)).answer


def suspected(bench: Bench) -> list[tuple[str | None, str | None]]:
    """What was told outside."""
    return [(each.task, each.member) for each in bench.told if each.type == EventType.TASK_SUSPECTED]


def herd(bench: Bench, *tasks: str) -> tuple[Workers, list[str]]:
    """Two workers with their tasks, dealt out in turn."""
    ids = bench.herd(2, *tasks)
    return Workers(bench, *ids), ids


def test_a_suspicion_is_told_once_and_shown(bench: Bench) -> None:
    """With its figures; the task runs on."""
    workers, (anna, _) = herd(bench, "a", "b")
    workers.run(20, {anna: 10})
    assert suspected(bench) == [("a", anna)]
    shown = status(bench, "a")
    assert (shown.state, shown.heap_suspicion.ground) == ("STARTING", "alone")
    assert shown.heap_suspicion.member_id == anna
    assert shown.heap_suspicion.to_bytes - shown.heap_suspicion.from_bytes > 100 * MIB
    assert f"the heap of {anna} grew from 101" in shown.heap_suspicion.said
    assert bench.instant.wall - shown.heap_suspicion.since_ms == 20 * 60_000 - 5_000
    assert status(bench, "b").heap_suspicion is None


def test_a_rise_that_may_be_of_several_is_shown_at_its_worker(bench: Bench) -> None:
    """As long as nobody knows with which of its tasks."""
    workers, (anna, berta) = herd(bench, "a", "b", "c", "d")
    workers.run(20, {anna: 10})
    assert suspected(bench) == []
    members = {each.member_id: each for each in bench.ask(DescribeGroup()).answer.members}
    assert (members[anna].heap_rise.candidates, members[anna].heap_rise.tasks) == (2, ("a", "c"))
    assert members[berta].heap_rise is None


@pytest.mark.parametrize("told", [{"heap_live_bytes": None}, {"heap_max_bytes": None}])
def test_a_worker_that_cannot_tell_is_asked_nothing(bench: Bench, told: dict[str, None]) -> None:
    """Its tasks have a JVM each, or Spark is another machine's."""
    workers, (anna, _) = herd(bench, "a", "b")
    workers.run(20, {anna: 10}, **told)
    assert suspected(bench) == []


def test_what_does_not_run_is_not_suspected(bench: Bench) -> None:
    """A failed task holds nothing."""
    workers, (anna, _) = herd(bench, "a", "b", "c")
    bench.report(anna, "c", bench.owner("c")[1], TaskState.FAILED, cause="broken")
    workers.run(20, {anna: 10})
    assert suspected(bench) == [("a", anna)]


def limited(bench: Bench, action: str, most: float = 120) -> tuple[Workers, list[str]]:
    """A task that is limited, alone with its worker."""
    workers, ids = herd(bench, "a", "b")
    put(bench, "a", heap_mb={"max": most, "action": action})
    return workers, ids


def test_a_limit_with_quarantine_takes_the_task_from_its_worker(bench: Bench) -> None:
    """At once: it is dealt to nobody, and its token is stale; across the loss of the manager, too."""
    workers, (anna, berta) = limited(bench, "quarantine")
    token = bench.owner("a")[1]
    workers.run(10, {anna: 10})
    assert not status(bench, "a").quarantined
    workers.run(10, {anna: 10})
    shown = status(bench, "a")
    assert (shown.state, shown.owner, shown.quarantined) == ("FAILED", None, True)
    assert shown.cause.startswith(LIMITED)
    assert shown.cause.endswith("more than 120 MiB")
    assert bench.report(anna, "a", token) == "STALE_TOKEN"
    assert [each.type for each in bench.told if each.task == "a"].count(EventType.TASK_QUARANTINED) == 1
    assert bench.state == "PreparingRebalance"
    bench.redeal([anna, berta], {"b": berta})
    bench.crash()
    assert status(bench, "a").quarantined


@pytest.mark.parametrize("act", [RestartTask(task="a"), "another definition"])
def test_who_takes_its_side_begins_anew(bench: Bench, act: Any) -> None:
    """What was seen before counts no more."""
    workers, (anna, berta) = limited(bench, "quarantine")
    workers.run(20, {anna: 10})
    bench.redeal([anna, berta], {"b": berta})
    if isinstance(act, str):
        put(bench, "a", heap_mb=100)
    else:
        bench.ask(act)
    shown = status(bench, "a")
    assert (shown.quarantined, shown.cause, shown.heap_suspicion) == (False, None, None)
    workers.run(1, {})
    assert status(bench, "a").heap_suspicion is None


def test_a_limit_with_restart_starts_the_query_anew_and_says_why(bench: Bench) -> None:
    """What it kept is gone with the query, or it is not its own: only what grows from then on counts."""
    workers, (anna, _) = limited(bench, "restart")
    workers.run(20, {anna: 10})
    shown = status(bench, "a")
    assert (shown.restart_count, shown.owner, shown.quarantined) == (1, anna, False)
    (told,) = [each.cause for each in bench.told if each.type == EventType.TASK_CHANGED and each.cause]
    assert told.startswith(LIMITED)
    assert any(f"task a is started anew: {told}"[:500] in line.event for line in bench.group.history)
    workers.run(10, {anna: 10})
    assert status(bench, "a").restart_count == 1
    workers.run(10, {anna: 10})
    assert status(bench, "a").restart_count == 2
    assert suspected(bench) == [("a", anna)] * 2


@pytest.mark.parametrize(("action", "most"), [("warn", 20), ("quarantine", 5000)])
def test_below_the_limit_and_with_a_warning_nothing_is_done(bench: Bench, action: str, most: float) -> None:
    """The suspicion is the warning."""
    workers, (anna, _) = limited(bench, action, most)
    workers.run(20, {anna: 10})
    shown = status(bench, "a")
    assert (shown.owner, shown.restart_count, shown.quarantined) == (anna, 0, False)
    assert suspected(bench) == [("a", anna)]


def test_the_state_of_tasks_counts(bench: Bench) -> None:
    """By the metrics that they report."""
    workers, (anna, _) = herd(bench, "a", "b", "c", "d")
    grown = 0
    for _ in range(20):
        workers.run(1, {anna: 10})
        grown += 9 * MIB
        bench.report(anna, "c", bench.owner("c")[1], metrics={"state": {"memory_bytes": grown}})
    assert suspected(bench) == [("c", anna)]
    assert status(bench, "c").heap_suspicion.ground == "state"


def test_a_worker_that_is_gone_leaves_what_was_seen_of_it(bench: Bench) -> None:
    """And nothing that grows with every worker that comes and goes."""
    workers, (anna, _) = herd(bench, "a", "b")
    workers.run(20, {anna: 10})
    bench.pass_time(600_000)
    assert bench.group.members == {}
    evidence = bench.group.tasks.heap.evidence
    assert evidence.open == evidence.before == {}
    assert len(evidence) == 2


def test_a_paused_task_is_not_quarantined(bench: Bench) -> None:
    """What somebody has wanted of it says more."""
    workers, (anna, _) = limited(bench, "quarantine")
    bench.ask(SetTarget(task="a", target=Target.PAUSED))
    workers.run(20, {anna: 10})
    assert not status(bench, "a").quarantined


def test_a_task_that_is_gone_is_not_suspected(bench: Bench) -> None:
    """Nor is another one of its name."""
    workers, (anna, berta) = herd(bench, "a", "b")
    workers.run(20, {anna: 10})
    bench.ask(DeleteTask(task="a"))
    bench.redeal([anna, berta], {"b": berta})
    put(bench, "a")
    workers.run(1, {})
    assert status(bench, "a").heap_suspicion is None


def offered(bench: Bench, ids: list[str]) -> dict[str, bool]:
    """By task, whether it is to have a worker to itself, as the leader hears of it in a rebalance."""
    asks = bench.rejoin(ids, kind="sparkherd")
    (tasks,) = [ask.answer.tasks for ask in asks if ask.answer.members]
    return {each.task: each.exclusive is True for each in tasks}


def undecided(bench: Bench, action: str = "quarantine") -> tuple[Workers, list[str]]:
    """A worker has died of one of its two tasks, nobody knows of which, and two others are left."""
    ids = bench.herd(3, "a", "b", "c", "x", "d", "e")
    put(bench, "x", heap_mb={"max": 120, "action": action})
    workers = Workers(bench, *ids)
    workers.run(20, {ids[0]: 20})
    assert suspected(bench) == []
    bench.die(ids[0])
    del workers.kept[ids[0]]
    return workers, ids[1:]


def test_of_tasks_that_cannot_be_told_apart_one_is_seen_alone(bench: Bench) -> None:
    """Once their worker is gone, and as long as its definition wants something done about it."""
    workers, ids = undecided(bench)
    assert offered(bench, ids) == {"a": False, "b": False, "c": False, "d": False, "e": False, "x": True}
    alone = {"x": ids[0]} | dict.fromkeys("abcde", ids[1])
    bench.deal(ids, alone)
    for member_id in ids:
        bench.claim(member_id, *(task for task, owner in alone.items() if owner == member_id))
    workers.run(5, {ids[0]: 20})
    assert [task for task, _ in suspected(bench)] == ["x"]
    assert not status(bench, "x").quarantined
    assert bench.state == "Stable"
    workers.run(20, {ids[0]: 20})
    assert status(bench, "x").quarantined
    assert offered(bench, ids) == dict.fromkeys("abcde", False)


def test_the_others_come_back_when_somebody_takes_the_side_of_who_is_seen_alone(bench: Bench) -> None:
    """It is offered as one among others then, and its worker is anybody's."""
    workers, ids = undecided(bench)
    assert offered(bench, ids)["x"]
    bench.deal(ids, {"x": ids[0]} | dict.fromkeys("abcde", ids[1]))
    bench.ask(RestartTask(task="x"))
    workers.run(1, {})
    bench.pass_time(1_000)
    assert bench.state == "PreparingRebalance"
    assert not offered(bench, ids)["x"]


def test_who_would_have_no_worker_then_is_not_parted(bench: Bench) -> None:
    """It runs with the others again, at once."""
    workers, ids = undecided(bench)
    assert offered(bench, ids)["x"]
    bench.deal(ids, dict.fromkeys("abcde", ids[1]))
    workers.run(0.1, {})
    bench.pass_time(1_000)
    assert bench.state == "PreparingRebalance"
    assert not offered(bench, ids)["x"]
    bench.deal(ids, dict.fromkeys("abcdex", ids[1]))
    workers.run(5, {})
    assert bench.state == "Stable"
    newcomer = bench.join(kind="sparkherd")
    assert offered(bench, ids)["x"]
    assert newcomer.answer.member_id


def test_nobody_is_parted_for_a_warning(bench: Bench) -> None:
    """Nobody has said that anything is to be done."""
    _, ids = undecided(bench, "warn")
    assert not any(offered(bench, ids).values())


def test_a_single_worker_has_everything(bench: Bench) -> None:
    """Nobody could be seen alone there."""
    workers, ids = undecided(bench)
    bench.die(ids[0])
    del workers.kept[ids[0]]
    assert not any(offered(bench, ids[1:]).values())


def test_tasks_are_told_apart_for_an_hour(bench: Bench) -> None:
    """What nobody has found out by then stays open."""
    workers, ids = undecided(bench)
    everywhere = {"x": ids[0]} | dict.fromkeys("abcde", ids[1])
    assert offered(bench, ids)["x"]
    bench.deal(ids, everywhere)
    workers.run(59, {})
    assert offered(bench, ids)["x"]
    bench.deal(ids, everywhere)
    workers.run(2, {})
    assert bench.state == "PreparingRebalance"
    assert not offered(bench, ids)["x"]


def apart(bench: Bench, action: str) -> tuple[Workers, list[str]]:
    """A worker's heap rose with two tasks, of which the other one runs on by itself."""
    workers, ids = herd(bench, "a", "b", "c")
    put(bench, "a", heap_mb={"max": 120, "action": action})
    workers.run(20, {ids[0]: 20})
    assert suspected(bench) == []
    return workers, ids


def test_what_a_jvm_uses_at_most_clears_whom_it_runs(bench: Bench) -> None:
    """It has not collected its old generation, as it has room enough."""
    workers, (anna, berta) = apart(bench, "warn")
    bench.redeal([anna, berta], {"a": anna, "c": berta, "b": berta})
    bench.release(anna, c=bench.owner("c")[1])
    bench.claim(berta, "c")
    for minute in range(20):
        bench.report(berta, "c", bench.owner("c")[1], batch_id=minute)
        for look in range(12):
            bench.pass_time(5_000)
            workers.tell(anna, heap_live_bytes=None)
            workers.tell(berta, heap_live_bytes=None, heap_after_gc_bytes=(50 + look % 2) * MIB)
    assert {task for task, _ in suspected(bench)} == {"a"}


def test_a_task_that_has_come_to_its_end_is_not_quarantined(bench: Bench) -> None:
    """It fills no heap any more."""
    workers, (anna, _) = apart(bench, "quarantine")
    bench.report(anna, "a", bench.owner("a")[1], TaskState.COMPLETED)
    bench.redeal([*bench.group.members], {"c": anna, "b": workers.bench.group.tasks.assigned["b"]})
    workers.run(20, {})
    assert [task for task, _ in suspected(bench)] == ["a"]
    assert (status(bench, "a").state, status(bench, "a").quarantined) == ("COMPLETED", False)


def test_one_after_the_other_is_seen_alone_and_none_that_is_kept_for_its_worker() -> None:
    """Those wait for the return of their worker, and none of them for a worker of its own."""
    bench = Bench(lost_task_delay_ms=600_000)
    _, ids = undecided(bench)
    assert offered(bench, ids) == dict.fromkeys("bcde", False)
    bench.deal(ids, dict.fromkeys("bcde", ids[1]))
    bench.pass_time(1_000)
    assert bench.group.tasks.heap.had_no_room == frozenset()


def test_what_a_worker_ran_before_its_last_minute_counts(bench: Bench) -> None:
    """Of a JVM that fills up, one task may fail before all do."""
    ids = bench.herd(3, "a", "b", "c", "x", "d", "e")
    put(bench, "x", heap_mb={"max": 120, "action": "quarantine"})
    workers = Workers(bench, *ids)
    workers.run(20, {ids[0]: 20})
    bench.report(ids[0], "a", bench.owner("a")[1], TaskState.FAILED, cause="OutOfMemoryError")
    workers.run(1, {ids[0]: 20})
    bench.die(ids[0])
    assert offered(bench, ids[1:])["x"]


@pytest.mark.parametrize("out_of_memory", [True, False])
def test_of_a_jvm_that_fills_up_within_minutes_the_tasks_are_told_apart(
    bench: Bench, *, out_of_memory: bool
) -> None:
    """It collects its old generation too seldom to show a rise; one that ends otherwise shows nothing."""
    ids = bench.herd(3, "a", "b", "c", "x", "d", "e")
    put(bench, "x", heap_mb={"max": 120, "action": "quarantine"})
    workers = Workers(bench, *ids)
    for look in range(30):
        workers.run(1 / 12, {}, heap_live_bytes=None, heap_after_gc_bytes=(100 + 22 * look) * MIB)
    bench.die(ids[0], EngineEnd.EXITED, out_of_memory=out_of_memory)
    assert offered(bench, ids[1:])["x"] is out_of_memory
