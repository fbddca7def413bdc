"""What admins and mishaps do to tasks on their way between groups, in histories that have transfers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from manager.core import commands
from manager.core.stored_rows import MemberRow, OwnershipRow, TaskRow
from manager.core.transfer_commands import CancelTransfer, StartTransfer
from protocol.states import Target, TaskState
from tests.simulation.actions import TASKS, new_definition
from tests.simulation.mishaps import POISON
from tests.simulation.workers import SimWorker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from tests.simulation.history import History

MOST = 3
"""Tasks of a transfer."""
SAME_ID = 0.08
"""How often somebody takes an id that is known."""
OWN_NAME = 0.6
"""How often a task keeps its name, where that is free; the one that kills does so always."""
RUN_BEFORE = 0.7
"""How often it is one that somebody has had."""
OVER = 0.7
"""And then, one that has come to its end, if there is any."""
STEERED = 0.4
"""How often somebody pauses, stops or resumes the tasks just before."""
CALLED_OFF = 0.2
TAKEN = 0.15
"""How often somebody creates a task of a name that another is to have."""
WITHIN_MS = (0, 1500)


def transfer(history: History, chance: Random) -> None:
    """Tasks of one group are to go on in another, under their names or others."""
    herds = history.plan.groups[: history.plan.herds]
    source, target = chance.sample(herds, 2)
    tasks = _stored(history, source)
    if chance.random() < RUN_BEFORE:
        tasks = _run_before(history, source, tasks, chance)
    names = _names(tasks, set(_stored(history, target)), chance)
    if not names or not _exists(history, target):
        return
    request = StartTransfer(transfer=_id(history.transfers, chance), to_group=target, tasks=names)
    delay_ms = _steer(history, source, names, chance) if chance.random() < STEERED else 0
    history.world.after(delay_ms, partial(history.ask, source, request))
    _disturb(history, source, request, chance, delay_ms)


def _disturb(history: History, source: str, request: StartTransfer, chance: Random, delay_ms: int) -> None:
    """While it is under way, somebody calls it off, or takes one of the names."""
    if chance.random() < CALLED_OFF:
        cancel = CancelTransfer(transfer=request.transfer, cause="another day")
        history.world.after(delay_ms + chance.randint(*WITHIN_MS), partial(history.ask, source, cancel))
    names = [name for name in request.tasks.values() if name in TASKS]
    if names and chance.random() < TAKEN:
        task, definition = chance.choice(names), new_definition(chance)
        create = commands.CreateTask(task=task, definition=definition, target=chance.choice([*Target]))
        taking = partial(history.ask, request.to_group, create)
        history.world.after(delay_ms + chance.randint(*WITHIN_MS), taking)


def _id(known: list[str], chance: Random) -> str:
    if known and chance.random() < SAME_ID:
        return chance.choice(known)
    known.append(f"x{chance.getrandbits(32)}")
    return known[-1]


def _stored(history: History, group: str) -> list[str]:
    """The tasks of a group."""
    rows = history.cluster.store.rows(group)
    return sorted(key[1] for kind, key in rows if kind is TaskRow and key[1] in {*TASKS, POISON})


def _run_before(history: History, group: str, tasks: Sequence[str], chance: Random) -> list[str]:
    """Those that somebody has had; now and then only what has come to its end."""
    rows = [history.cluster.store.rows(group).get((OwnershipRow, (group, task))) for task in tasks]
    had = [row for row in rows if isinstance(row, OwnershipRow) and row.token]
    over = [row for row in had if row.state is TaskState.COMPLETED]
    return [row.task for row in (over if over and chance.random() < OVER else had)]


def _exists(history: History, group: str) -> bool:
    """As `manager.storage.transfer_table` finds out."""
    return any(kind in {TaskRow, MemberRow} for kind, _ in history.cluster.store.rows(group))


def _names(tasks: Sequence[str], taken: set[str], chance: Random) -> dict[str, str]:
    """Some tasks with free names in the other group: their own where that is free, mostly."""
    chosen = chance.sample(tasks, min(len(tasks), chance.choice([1, 1, 1, 2, MOST])))
    free = [task for task in TASKS if task not in taken]
    names: dict[str, str] = {}
    for task in chosen:
        keeps = task == POISON or (task in free and chance.random() < OWN_NAME)
        own = [task] if keeps else free
        if left := [name for name in own if name not in names.values()]:
            names[task] = chance.choice(left)
    return names


def _steer(history: History, group: str, names: dict[str, str], chance: Random) -> int:
    """Nobody would have what kills do anything but run. Returns how long after that somebody has them go."""
    target = chance.choice([*Target])
    for task in filter(TASKS.__contains__, names):
        history.ask(group, commands.SetTarget(task=task, target=target))
    return chance.randint(*WITHIN_MS)


def cancel_transfer(history: History, chance: Random) -> None:
    """Somebody has tasks stay that are on their way."""
    giving = [row for rows in history.cluster.store.active_transfers().values() for row in rows if row.leaves]
    if giving:
        row = chance.choice(giving)
        history.ask(row.group, CancelTransfer(transfer=row.transfer, cause="rather not"))


def replace_task(history: History, chance: Random) -> None:
    """Somebody creates a task of a name that has become free, which is to run, or not yet."""
    group = chance.choice(history.plan.groups[: history.plan.herds])
    if free := sorted(set(TASKS) - set(_stored(history, group))):
        task, definition = chance.choice(free), new_definition(chance)
        target = chance.choice([*Target, Target.STOPPED])
        history.ask(group, commands.CreateTask(task=task, definition=definition, target=target))


def fail(history: History, chance: Random) -> None:
    """A query fails, and its worker says so."""
    workers = [each for each in history.alive() if isinstance(each, SimWorker) and each.owned]
    if workers:
        worker = chance.choice(workers)
        worker.fail(chance.choice([*worker.owned]))


def leave_running(history: History, chance: Random) -> None:
    """A worker dies, and its queries run on at a server of their own for a while."""
    workers = [each for each in history.alive() if isinstance(each, SimWorker) and each.owned]
    if workers:
        worker = chance.choice(workers)
        queries = worker.fenced()
        worker.kill()
        history.server.leave(queries, worker.name, chance.randint(500, 8000))


def sweep(history: History, chance: Random) -> None:
    """A worker looks for queries that are nobody's, and ends them."""
    workers = [each for each in history.alive() if isinstance(each, SimWorker)]
    looking = [each for each in workers if each.told.homes and not each.is_frozen]
    if looking:
        history.server.sweep(chance.choice(looking), workers)


TRANSFER_ACTIONS: dict[str, Callable[[History, Random], None]] = {
    action.__name__: action
    for action in (transfer, cancel_transfer, replace_task, fail, leave_running, sweep)
}
