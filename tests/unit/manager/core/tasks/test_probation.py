from __future__ import annotations

from random import Random
from typing import Any

import pytest
from msgspec import UNSET, structs

from manager.core.commands import DeleteTask, GetTaskStatus, PutTask, RemoveMember, RestartTask, SetTarget
from manager.core.tasks import quarantine
from protocol.messages.events import EventType
from protocol.messages.membership import EngineEnd
from protocol.states import Target, TaskState
from tests.unit.manager.core.bench import SESSION_MS, Bench, definition

EXITED, KILLED = EngineEnd.EXITED, EngineEnd.KILLED


def rounds(bench: Bench, poison: str, engine: EngineEnd | None, at_most: int) -> int:
    """Have whoever is granted `poison` die of it, and a new worker come; the others get through a batch.

    Returns how many workers that has cost when the task is no longer run.
    """
    for deaths in range(at_most):
        ids = list(bench.group.members)
        owner = grant_all(bench, ids, poison)
        if owner is None:
            return deaths
        bench.die(owner, engine)
        bring_in_another(bench)
    raise AssertionError(f"{at_most} workers died, and {poison} is still run")


def grant_all(bench: Bench, ids: list[str], poison: str) -> str | None:
    """Everybody claims what it is given until all is granted, or somebody has the poison."""
    registry = bench.group.tasks
    for _ in range(30):
        for member_id in ids:
            bench.claim(member_id, *(t for t, m in registry.assigned.items() if m == member_id))
        if (owner := registry.owner_of(poison)) is not None:
            return owner
        for member_id in ids:
            get_through(bench, member_id)
        if all(registry.owner_of(row.task) for row in registry.runnable()):
            return None
    raise AssertionError("some tasks are never granted")


def get_through(bench: Bench, member_id: str) -> None:
    """Each task of a member has done a batch."""
    for task in bench.group.tasks.owned_by(member_id):
        bench.report(member_id, task, bench.group.tasks.ownership[task].token, batch_id=0)


def bring_in_another(bench: Bench) -> None:
    """A worker in place of the dead one; everything is dealt anew, in turn."""
    newcomer = bench.join(kind="sparkherd")
    for member_id in [m for m in bench.group.members if m not in bench.group.joining]:
        owned = {t: bench.group.tasks.ownership[t].token for t in bench.group.tasks.owned_by(member_id)}
        bench.join(member_id, kind="sparkherd", metadata={"owned": owned})
    bench.pass_time()
    ids = [*bench.group.members]
    assert newcomer.answer.member_id in ids
    names = [row.task for row in bench.group.tasks.runnable()]
    owner_of = bench.group.tasks.owner_of
    bench.deal(ids, {t: owner_of(t) or ids[n % len(ids)] for n, t in enumerate(names)})


def status(bench: Bench, task: str) -> Any:
    """As admins see it."""
    return bench.ask(GetTaskStatus(task=task)).answer


def test_a_task_that_ends_the_engine_costs_two_workers(bench: Bench) -> None:
    """Eight tasks start at once; the second worker dies of it alone, which settles it."""
    bench.herd(3, *"abcdefgh")
    assert rounds(bench, "a", EXITED, 9) == 2
    told = status(bench, "a")
    assert (told.state, told.owner) == ("FAILED", None)
    assert told.cause.startswith("quarantined: 2 workers died soon after they were given this task")
    assert told.cause.count("the engine died: EXITED") == 2
    assert [status(bench, t).state for t in "bcdefgh"] == ["RUNNING"] * 7
    events = [event for event in bench.told if event.task == "a" and event.cause]
    assert [event.type for event in events] == [EventType.TASK_FAILED, EventType.TASK_QUARANTINED]


def test_a_suspect_of_one_death_says_so(bench: Bench) -> None:
    """It waits for its turn though one worker alone has died, whose engine had ended by itself."""
    owner = grant_all(bench, bench.herd(3, *"ab"), "a")
    assert owner is not None
    bench.die(owner, EXITED)
    bring_in_another(bench)
    cause = status(bench, "a").cause
    assert cause == ("1 worker died soon after it was given it: it waits for its turn to be started alone")


@pytest.mark.parametrize("engine", [None, KILLED])
def test_a_task_whose_workers_just_vanish_costs_six(bench: Bench, engine: EngineEnd | None) -> None:
    """Somebody else may have killed them, so it takes more before that is certain."""
    bench.herd(3, *"abcdefgh")
    assert rounds(bench, "a", engine, 9) == quarantine.GUILTY_LOSSES
    assert status(bench, "a").state == "FAILED"
    assert [status(bench, t).state for t in "bcdefgh"] == ["RUNNING"] * 7


def test_a_poison_task_that_comes_late_is_found_as_well(bench: Bench) -> None:
    """All tasks had got through batches: an engine that ends by itself was ended by one of them."""
    a, b, c = bench.herd(3, *"abcdef")
    for member_id in (a, b, c):
        get_through(bench, member_id)
    bench.die(a, EXITED)
    bring_in_another(bench)
    assert rounds(bench, "a", EXITED, 9) == 1
    assert [status(bench, t).state for t in "bcdef"] == ["RUNNING"] * 5


@pytest.mark.parametrize("engine", [None, KILLED])
def test_a_worker_killed_from_outside_is_held_against_no_settled_task(
    bench: Bench, engine: EngineEnd | None
) -> None:
    """Its tasks start elsewhere at once, all of them."""
    a, _ = bench.herd(2, *"abcdef")
    get_through(bench, a)
    bench.die(a, engine)
    bring_in_another(bench)
    for member_id in bench.group.members:
        wanted = [t for t, m in bench.group.tasks.assigned.items() if m == member_id]
        assert [g.task for g in bench.claim(member_id, *wanted).answer.granted] == sorted(wanted)
    assert [row.blame for row in bench.group.tasks.ownership.values()] == [None] * 6


@pytest.mark.parametrize("seed", range(20))
def test_chaos_puts_nothing_into_quarantine(seed: int) -> None:
    """Twenty workers are killed at random, most tasks on their way up or not; in the end all of them run."""
    chance, bench = Random(seed), Bench()
    bench.herd(3, *"abcdef")
    for _ in range(20):
        for member_id in bench.group.members:
            wanted = [t for t, m in bench.group.tasks.assigned.items() if m == member_id]
            bench.claim(member_id, *wanted)
            if chance.random() < 0.6:
                get_through(bench, member_id)
        bench.die(chance.choice(list(bench.group.members)), chance.choice([None, KILLED]))
        bring_in_another(bench)
    assert grant_all(bench, list(bench.group.members), "nothing") is None
    assert {status(bench, t).state for t in "abcdef"} == {"RUNNING"}
    assert EventType.TASK_QUARANTINED not in [event.type for event in bench.told]


def suspected(*tasks: str) -> tuple[Bench, str]:
    """The one worker that is left after another has died of one of these, which it is to run now."""
    bench = Bench()
    a, b = bench.herd(2, *(name for task in tasks for name in (task, f"{task}-settled")))
    get_through(bench, b)
    bench.die(a, EXITED)
    bench.redeal([b], dict.fromkeys(bench.group.tasks.definitions, b))
    return bench, b


def test_suspects_start_one_after_another() -> None:
    """The next one's claim waits until the one before has got through a batch, or has come to rest."""
    bench, b = suspected("a", "b", "c")
    answer = bench.claim(b, "a", "b", "c").answer
    assert ([g.task for g in answer.granted], [(p.task, p.owner) for p in answer.pending]) == (
        ["a"],
        [("b", ""), ("c", "")],
    )
    assert "waits for its turn" in status(bench, "b").cause
    waiting = bench.claim(b, "b", "c", wait_ms=3000)
    bench.report(b, "a", bench.group.tasks.ownership["a"].token)
    assert waiting.waits
    bench.report(b, "a", bench.group.tasks.ownership["a"].token, batch_id=0)
    assert [g.task for g in waiting.answer.granted] == ["b"]
    waiting = bench.claim(b, "c", wait_ms=3000)
    bench.report(b, "b", bench.group.tasks.ownership["b"].token, TaskState.FAILED, cause="no such table")
    assert [g.task for g in waiting.answer.granted] == ["c"]


def test_of_one_claim_suspects_come_last() -> None:
    """Else the others begin beside one, and no death is ever its own where one worker is left."""
    bench, b = suspected("a")
    bench.create("new", "z")
    bench.redeal([b], dict.fromkeys(bench.group.tasks.definitions, b))
    answer = bench.claim(b, "a", "new", "z", "gone").answer
    assert [g.task for g in answer.granted] == ["new", "z"]
    assert [p.task for p in answer.pending] == ["a"]
    get_through(bench, b)
    assert [g.task for g in bench.claim(b, "a").answer.granted] == ["a"]


def test_a_suspect_without_data_is_believed_after_a_while() -> None:
    """Its source may have nothing for it; the next one starts then, and nothing is held against it now."""
    bench, b = suspected("a", "b")
    bench.claim(b, "a", "b")
    for _ in range(quarantine.PROOF_MS // 3000 - 1):
        bench.pass_time(3000)
        assert [p.task for p in bench.claim(b, "b").answer.pending] == ["b"]
    waiting = bench.claim(b, "b", wait_ms=SESSION_MS)
    bench.pass_time(3000)
    assert [g.task for g in waiting.answer.granted] == ["b"]
    assert bench.group.tasks.ownership["a"].blame is None


def test_a_death_that_nobody_can_be_blamed_for_speaks_for_the_suspects_elsewhere(bench: Bench) -> None:
    """Somebody is killing workers from outside; an engine that ended by itself stays on the record."""
    a, b, c = bench.herd(3, "a", "b", "c")
    get_through(bench, c)
    bench.die(a)
    held = bench.group.tasks.ownership["a"].blame
    assert held is not None
    assert [death.engine for death in held.deaths] == [None]
    bench.redeal([b, c], {"a": c, "b": b, "c": c})
    get_through(bench, b)
    bench.die(b)
    assert bench.group.tasks.ownership["a"].blame is None


def test_who_killed_after_a_minute_is_not_believed_in_half_of_one() -> None:
    """A large batch takes its time to run out of memory: twice as long as before has to pass."""
    bench, _ = suspected("a")
    row = bench.group.tasks.ownership["a"]
    assert row.blame is not None
    [death] = row.blame.deaths
    slow = structs.replace(
        row, blame=structs.replace(row.blame, deaths=(structs.replace(death, lived_ms=60_000),))
    )
    assert (quarantine.proof_ms(row), quarantine.proof_ms(slow)) == (quarantine.PROOF_MS, 120_000)


def test_nothing_is_settled_by_a_death_that_may_have_been_anothers() -> None:
    """A new task was on its way up beside the suspect: both are suspects now, and the next one tells."""
    bench, b = suspected("a")
    bench.create("new")
    bench.redeal([b], dict.fromkeys(bench.group.tasks.definitions, b))
    bench.claim(b, "a")
    bench.claim(b, "new")
    bench.die(b, EXITED)
    assert (status(bench, "a").state, status(bench, "new").state) == ("UNASSIGNED", "UNASSIGNED")
    bring_in_another(bench)
    assert rounds(bench, "new", EXITED, 9) == 1
    assert status(bench, "a").state == "RUNNING"


def test_a_suspect_waits_until_the_others_have_moved_away(bench: Bench) -> None:
    """A worker of its own: what the assignment gives to others is still being stopped there."""
    a, b, c = bench.herd(3, "a", "b", "c")
    get_through(bench, b)
    get_through(bench, c)
    bench.die(a, EXITED)
    bench.redeal([b, c], {"a": b, "b": c, "c": c})
    waiting = bench.claim(b, "a", wait_ms=3000)
    assert waiting.waits
    bench.release(b, b=1)
    assert [g.task for g in waiting.answer.granted] == ["a"]


def test_many_suspects_do_not_take_for_ever() -> None:
    """With each four that do no harm, one more may be on its way up at a time."""
    tasks = [f"t{n}" for n in range(40)]
    bench, b = suspected(*tasks)
    turns = 0
    while any(bench.group.tasks.owner_of(task) is None for task in tasks):
        bench.claim(b, *tasks)
        get_through(bench, b)
        turns += 1
    assert turns < 15


def test_the_leader_is_told_of_suspects_and_deals_anew_when_none_is_left(bench: Bench) -> None:
    """They are to have a worker of their own, and nobody is to have one any longer than needed."""
    a, b = bench.herd(2, "a", "b")
    get_through(bench, b)
    bench.die(a, EXITED)
    joined = bench.join(b, kind="sparkherd", metadata={"owned": {"b": 1}})
    assert {task.task: task.suspect for task in joined.answer.tasks} == {"a": True, "b": UNSET}
    bench.deal([b], {"a": b, "b": b})
    bench.claim(b, "a")
    bench.pass_time(2000)
    assert bench.state == "Stable"
    get_through(bench, b)
    bench.pass_time(100)
    assert bench.state == "PreparingRebalance"


def test_a_suspect_that_nobody_can_run_keeps_nobody_from_being_dealt_anew(bench: Bench) -> None:
    """As one whose format no worker has: it has no worker of its own, and may stay suspected for ever."""
    a, b = bench.herd(2, "a", "b", "c")
    get_through(bench, b)
    bench.die(a, EXITED)
    joined = bench.join(b, kind="sparkherd", metadata={"owned": {"b": 1}})
    assert {task.task for task in joined.answer.tasks if task.suspect is True} == {"a", "c"}
    bench.deal([b], {"a": b, "b": b})
    bench.claim(b, "a")
    get_through(bench, b)
    bench.pass_time(100)
    assert bench.state == "PreparingRebalance"


def quarantined() -> Bench:
    """A group that has put its task `a` into quarantine."""
    bench = Bench()
    bench.herd(2, "a", "b")
    assert rounds(bench, "a", EXITED, 9) == 2
    return bench


def test_quarantine_outlasts_managers_and_rebalances() -> None:
    """Whoever leads is not even told of the task."""
    bench = quarantined()
    before = status(bench, "a")
    bench.crash()
    bring_in_another(bench)
    assert (status(bench, "a").state, status(bench, "a").cause) == ("FAILED", before.cause)
    assert "a" not in bench.group.tasks.assigned


@pytest.mark.parametrize(
    "command",
    [
        RestartTask(task="a"),
        SetTarget(task="a", target=Target.RUNNING),
        PutTask(task="a", definition=definition(v=2)),
    ],
)
def test_only_an_admin_ends_it(command: Any) -> None:
    """A restart, a resume or another definition: it is placed again, with a clean record."""
    bench = quarantined()
    assert bench.ask(command).error == "NONE"
    bench.pass_time(100)
    assert status(bench, "a").state == "UNASSIGNED"
    assert "died" not in str(status(bench, "a").cause)
    assert bench.group.tasks.ownership["a"].blame is None
    bring_in_another(bench)
    assert bench.claim(bench.group.tasks.assigned["a"], "a").answer.granted


@pytest.mark.parametrize("order", [SetTarget, PutTask])
def test_a_quarantined_task_that_was_stopped_runs_again_when_that_is_wanted(order: Any) -> None:
    """By a resume as by a list of tasks that says so."""
    bench = quarantined()
    bench.ask(SetTarget(task="a", target=Target.STOPPED))
    wanted = {"definition": definition()} if order is PutTask else {}
    bench.ask(order(task="a", target=Target.RUNNING, **wanted))
    assert bench.group.tasks.is_runnable("a")
    assert status(bench, "a").state == "UNASSIGNED"


def test_a_task_in_quarantine_is_kept_for_no_worker() -> None:
    """Whoever restarts it wants it to run, on whichever worker there is."""
    bench = Bench(lost_task_delay_ms=900_000)
    bench.herd(2, "a", "b")
    assert rounds(bench, "a", None, 20) > 0
    assert status(bench, "a").state == "FAILED"
    assert bench.group.tasks.ownership["a"].lost_by is None


def test_a_stopped_task_in_quarantine_stays_stopped() -> None:
    """Until it is resumed, which is word enough for it."""
    bench = quarantined()
    bench.ask(SetTarget(task="a", target=Target.STOPPED))
    assert status(bench, "a").state == "STOPPED"
    bench.ask(RestartTask(task="a"))
    assert status(bench, "a").state == "STOPPED"
    bench.ask(SetTarget(task="a", target=Target.RUNNING))
    assert status(bench, "a").state == "UNASSIGNED"


def test_a_deleted_task_takes_its_record_with_it() -> None:
    """One of the same name is another task."""
    bench = quarantined()
    bench.ask(DeleteTask(task="a"))
    bench.create("a")
    assert status(bench, "a").state == "UNASSIGNED"
    assert "a" in {row.task for row in bench.group.tasks.runnable()}


def test_a_manager_that_takes_over_remembers_who_is_suspected() -> None:
    """The task on probation is on probation again, for the full time."""
    bench, b = suspected("a", "b")
    bench.claim(b, "a", "b")
    bench.crash()
    assert [p.task for p in bench.claim(b, "b").answer.pending] == ["b"]
    bench.die(b, EXITED)
    assert status(bench, "a").state == "FAILED"


def test_a_static_worker_that_comes_back_too_soon_has_died_too(bench: Bench) -> None:
    """Its supervisor starts it again before its session ends; its tasks were on their way up."""
    bench.create("a", "b")
    first = bench.join(instance_id="s", kind="sparkherd")
    bench.pass_time()
    for deaths in range(1, quarantine.GUILTY_LOSSES + 1):
        owner = str(first.answer.member_id)
        if bench.state == "PreparingRebalance":
            bench.join(owner, instance_id="s", kind="sparkherd", metadata={"deaths": deaths})
        if bench.state == "AwaitingSync":
            bench.sync(owner, given={owner: {"tasks": ["a"]}}, instance_id="s")
        assert bench.claim(owner, "a").answer.granted
        first = bench.join(instance_id="s", kind="sparkherd")
        bench.pass_time(100)
        is_news = deaths >= quarantine.SUSPECT_LOSSES
        assert bench.state == ("PreparingRebalance" if is_news else "Stable")
        row = bench.group.tasks.ownership["a"]
        assert row.blame is not None
        assert len(row.blame.deaths) == deaths
    assert bench.owner("a")[2] == "FAILED"


def test_who_leaves_in_order_or_is_removed_has_not_died(bench: Bench) -> None:
    """Rolling restarts and admins are no deaths."""
    a, b, c = bench.herd(3, "a", "b", "c")
    bench.leave((a, None))
    bench.ask(RemoveMember(member_id=b))
    assert [row.blame for row in bench.group.tasks.ownership.values()] == [None] * 3
    assert EventType.WORKER_LOST not in [event.type for event in bench.told]
    bench.die(c, KILLED)
    assert [event.cause for event in bench.told if event.type == EventType.WORKER_LOST] == [
        "the engine died: KILLED"
    ]
