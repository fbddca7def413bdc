"""Deaths that are found out after the task has been taken away: suspects whose worker was silent for long."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from manager.core.commands import DeleteTask, RestartTask, SetTarget
from manager.core.stored_rows import Blame, WorkerDeath
from manager.core.tasks import quarantine
from protocol.messages.events import EventType
from protocol.messages.membership import EngineEnd
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import SESSION_MS, Bench

EXITED = EngineEnd.EXITED

TERMS: dict[str, Any] = {"kind": "sparkherd", "rebalance_ms": SESSION_MS // 5}


def silent(*tasks: str, session_ms: int = SESSION_MS, **settings: Any) -> tuple[Bench, str, str]:
    """A worker silent with `tasks` on probation, which are another's before its session ends: both ids."""
    bench = Bench(**settings)
    bench.create(*tasks)
    terms = TERMS | {"session_ms": session_ms}
    first = bench.join(instance_id="s", **terms)
    bench.pass_time()
    dead = str(first.answer.member_id)
    second = bench.join(instance_id="t", **terms)
    bench.join(dead, "s", **terms)
    other_id = str(second.answer.member_id)
    bench.settle([dead, other_id], {dead: {"tasks": [*tasks]}})
    assert len(bench.claim(dead, *tasks).answer.granted) == len(tasks)
    again = bench.join(other_id, "t", metadata={"lags": True}, **terms)
    bench.pass_time(SESSION_MS // 5)
    assert again.error == "NONE"
    bench.sync(other_id, given={other_id: {"tasks": [*tasks]}})
    bench.pass_time(SESSION_MS // 5)
    assert {bench.owner(task)[0] for task in tasks} == {None}
    return bench, dead, other_id


def test_what_was_taken_from_a_silent_worker_is_to_blame_for_its_death() -> None:
    """Its session outlasts the patience with owners that do not let go; that it is dead was so all along."""
    bench, dead, _ = silent("a")
    bench.die(dead)
    held = bench.group.tasks.ownership["a"].blame
    assert held is not None
    assert [(death.member_id, death.alone) for death in held.deaths] == [(dead, True)]
    assert held.deaths[0].lived_ms > SESSION_MS * 9 // 10


def test_what_was_taken_from_a_worker_that_lived_on_is_not_to_blame() -> None:
    """It has been heard since."""
    bench, dead, _ = silent("a")
    bench.heartbeat(dead, instance_id="s")
    bench.die(dead)
    assert bench.group.tasks.ownership["a"].blame is None


def test_what_has_proved_itself_at_another_worker_since_is_not_to_blame() -> None:
    """It was taken from a silent worker, and got through a batch elsewhere before that one was dead."""
    bench, dead, other = silent("a", "b")
    bench.claim(other, "a", "b")
    bench.report(other, "a", bench.owner("a")[1], batch_id=0)
    bench.die(dead)
    assert bench.group.tasks.ownership["a"].blame is None
    assert bench.group.tasks.ownership["b"].blame is not None


def test_a_task_that_an_admin_took_sides_with_is_not_to_blame() -> None:
    """Whoever restarts it between its removal and the worker's death has looked at it."""
    bench, dead, _ = silent("a")
    bench.ask(RestartTask(task="a"))
    bench.die(dead)
    assert bench.group.tasks.ownership["a"].blame is None


def test_a_stopped_or_deleted_task_is_not_to_blame() -> None:
    """It does not run any more, so nothing is to be found out about it."""
    bench, dead, _ = silent("a", "b")
    bench.ask(DeleteTask(task="a"))
    bench.ask(SetTarget(task="b", target=Target.STOPPED))
    bench.die(dead)
    assert bench.group.tasks.ownership["b"].blame is None


def test_what_another_worker_runs_by_now_is_not_taken_from_it() -> None:
    """The sixth death is that of a former owner: the present one dies of the task as well, or clears it."""
    bench, dead, other = silent("a")
    bench.claim(other, "a")
    row = bench.group.tasks.ownership["a"]
    death = WorkerDeath(at_ms=0, member_id="m", lived_ms=1, how="gone", alone=True)
    bench.group.apply(structs.replace(row, blame=Blame((death,) * (quarantine.GUILTY_LOSSES - 1))))
    bench.store[type(row), row.key] = bench.group.tasks.ownership["a"]
    bench.die(dead)
    after = bench.group.tasks.ownership["a"]
    assert after.blame is not None
    assert (after.owner, len(after.blame.deaths), after.blame.quarantined) == (other, 6, False)


def third(bench: Bench, *tasks: str) -> str:
    """Another worker comes; it is granted `tasks`, and nobody else any."""
    joined = bench.join(metadata={"order": bench.group.generation}, client_id="c3", **TERMS)
    bench.pass_time(SESSION_MS // 5)
    member_id = str(joined.answer.member_id)
    bench.sync(member_id, given={member_id: {"tasks": [*tasks]}})
    bench.claim(member_id, *tasks)
    return member_id


def outlast(bench: Bench, dead: str, alive: str) -> None:
    """The session of `dead` ends while `alive` goes on."""
    while dead in bench.group.members:
        bench.heartbeat(alive)
        bench.pass_time(100)


def test_the_late_death_of_a_former_owner_does_not_lift_a_quarantine() -> None:
    """Two others have died of the task meanwhile, which has settled it; told once."""
    bench, dead, other = silent("a")
    bench.claim(other, "a")
    bench.die(other, EXITED)
    bench.die(third(bench, "a"), EXITED)
    assert bench.group.tasks.ownership["a"].is_quarantined
    alive = third(bench)
    outlast(bench, dead, alive)
    row = bench.group.tasks.ownership["a"]
    assert (row.state, row.is_quarantined) == (TaskState.FAILED, True)
    assert not bench.group.tasks.is_runnable("a")
    assert [event.type for event in bench.told].count(EventType.TASK_QUARANTINED) == 1


def test_each_of_several_silent_workers_counts() -> None:
    """Taken from one after the other, both dead: neither death is lost."""
    bench, first, second = silent("a", session_ms=3 * SESSION_MS)
    bench.claim(second, "a")
    alive = third(bench, "a")
    bench.pass_time(SESSION_MS // 5)
    assert bench.owner("a")[0] is None
    assert {first, second} <= bench.group.members.keys()
    outlast(bench, second, alive)
    outlast(bench, first, alive)
    held = bench.group.tasks.ownership["a"].blame
    assert held is not None
    assert sorted(death.member_id for death in held.deaths) == sorted([first, second])
    assert not bench.group.tasks.in_doubt


def test_what_a_late_death_puts_into_quarantine_is_kept_for_no_worker() -> None:
    """It had been kept for its last owner; whoever restarts it gets it to run at once."""
    bench, dead, _ = silent("a", lost_task_delay_ms=900_000)
    row = bench.group.tasks.ownership["a"]
    death = WorkerDeath(at_ms=0, member_id="m", lived_ms=1, how="gone", alone=True)
    row = structs.replace(row, lost_by="c", blame=Blame((death,) * (quarantine.GUILTY_LOSSES - 1)))
    bench.group.apply(row)
    bench.store[type(row), row.key] = row
    bench.die(dead)
    after = bench.group.tasks.ownership["a"]
    assert (after.is_quarantined, after.lost_by) == (True, None)


def test_a_long_session_hides_no_death(bench: Bench) -> None:
    """Nobody is believed before a worker that died of it at once would have been found out."""
    bench.create("a")
    joined = bench.join(kind="sparkherd", session_ms=quarantine.PROOF_MS * 2)
    bench.pass_time()
    dead = str(joined.answer.member_id)
    bench.sync(dead, given={dead: {"tasks": ["a"]}})
    bench.claim(dead, "a")
    bench.pass_time(quarantine.PROOF_MS * 2)
    assert dead not in bench.group.members
    assert bench.group.tasks.ownership["a"].blame is not None


def test_who_runs_it_by_now_has_to_outlast_the_former_owners_death() -> None:
    """A task that took 27 s to kill is not believed after 30."""
    long_ms = 25_000
    bench, dead, other = silent("a", session_ms=long_ms)
    bench.claim(other, "a")
    granted = bench.now
    outlast(bench, dead, other)
    lived_ms = bench.group.tasks.ownership["a"].blame.deaths[0].lived_ms  # type: ignore[union-attr]
    assert 2 * lived_ms > 2 * long_ms
    token = bench.owner("a")[1]
    bench.join(other, metadata={"owned": {"a": token}}, **TERMS | {"session_ms": long_ms})
    bench.deal([other], {"a": other})
    while bench.now < granted + 2 * lived_ms - 1:
        bench.heartbeat(other)
        bench.pass_time(min(1000, granted + 2 * lived_ms - 1 - bench.now))
    assert bench.group.tasks.ownership["a"].blame is not None
    bench.pass_time(1)
    assert bench.group.tasks.ownership["a"].blame is None
