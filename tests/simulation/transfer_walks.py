"""Many transfers of several tasks among three groups, whose managers die at random (docs/simulation.md).

What `tests.simulation.transfers` tries in every order is one task that goes one way, once. Here tasks go on
and come back, under other names, while those of their names are deleted and created, and any word of any
transfer is told late or twice. `python -m tests.simulation.transfer_walks 1000` tries as many walks.
"""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Final

from manager.core.commands import CreateTask, DeleteTask
from manager.core.stored_rows import TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TaskState
from tests.simulation.transfers import ViolatedError
from tests.unit.manager.core.bench import Bench, definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from protocol.messages.base import Request

NAMES: Final = ("t", "u", "v")
AT_FIRST: Final = {"a": ("t", "u"), "b": ("t",), "c": ()}
EVENTS: Final = {
    "told": 30,
    "stops": 10,
    "runs": 6,
    "killed": 6,
    "begins": 4,
    "cancelled": 1,
    "deleted": 1,
    "created": 1,
}
"""What happens, and how often beside the others."""
LENGTH: Final = 150
"""Events of a walk."""
ROUNDS: Final = 12
"""Of the truth, told to all, until nothing is under way any more."""

Word = tuple[TransferRow, ...]


class Walk:
    """Three groups with a worker each; the same `seed` gives the same walk.

    `fence` is the highest token that the sink has seen of each home, `alive` are the homes of tasks that are
    somewhere, and `heard` has what was stored of each transfer at any moment.
    """

    def __init__(self, seed: int) -> None:
        self._chance = Random(seed)
        self.benches = {name: Bench(name) for name in AT_FIRST}
        self.workers = {name: self.benches[name].herd(1, *tasks)[0] for name, tasks in AT_FIRST.items()}
        self.alive = {TaskHome(group, task) for group, tasks in AT_FIRST.items() for task in tasks}
        self.fence = dict.fromkeys(self.alive, 1)
        self.heard: dict[str, list[Word]] = {}
        self.history: list[str] = []
        self.happened: Counter[str] = Counter()

    def run(self) -> Counter[str]:
        """Let it happen, and come to an end.

        Returns:
            How often rows of each step were stored, and how often a task ran.

        Raises:
            ViolatedError: an invariant does not hold.
        """
        acts = {what: getattr(self, f"_{what}") for what in EVENTS}
        for _ in range(LENGTH):
            [what] = self._chance.choices([*EVENTS], [*EVENTS.values()])
            self._do(what, acts[what])
        for _ in range(ROUNDS):
            self._do("told the truth", self._truth)
        self._check_end()
        return self.happened

    def _do(self, what: str, act: Callable[[], str]) -> None:
        self.history.append(f"{what} {act()}")
        self._listen()
        self._check()

    # What may happen.

    def _ask(self, group: str, request: Request) -> bool:
        ask = self.benches[group].ask(request)
        return not ask.waits and ask.error == "NONE"

    def _begins(self) -> str:
        source, target = self._chance.sample([*self.benches], 2)
        tasks = sorted(self.benches[source].group.tasks.definitions)
        chosen = self._chance.sample(tasks, min(len(tasks), self._chance.randint(1, 2)))
        names = dict(zip(chosen, self._chance.sample(NAMES, len(chosen)), strict=True))
        transfer = f"x{len(self.history)}"
        if names and self._ask(source, StartTransfer(transfer=transfer, to_group=target, tasks=names)):
            self.heard[transfer] = []
        return f"{transfer}: {source} to {target} {names}"

    def _told(self) -> str:
        """Any word of any transfer, the latest ones more often."""
        known = [transfer for transfer, words in self.heard.items() if words]
        if not known:
            return "nothing"
        transfer = self._chance.choice(known[-3:])
        words = self.heard[transfer]
        word = words[-1] if self._chance.random() < 0.7 else self._chance.choice(words)
        group = self._chance.choice(_groups(word))
        self._tell(group, transfer, word)
        return f"{group} of {transfer}: {[f'{row.group}/{row.task} {row.step.value}' for row in word]}"

    def _tell(self, group: str, transfer: str, word: Word) -> None:
        peers = tuple(row for row in word if row.group != group)
        self._ask(group, AdvanceTransfer(transfer=transfer, peers=peers))

    def _stops(self) -> str:
        """A worker stops what it is to stop, and says so."""
        group = self._chance.choice([*self.benches])
        self._stop(group)
        return group

    def _stop(self, group: str) -> None:
        bench = self.benches[group]
        for task in sorted(bench.group.tasks.to_stop):
            owner, token, _ = bench.owner(task)
            if owner is not None:
                bench.report(owner, task, token, TaskState.STOPPED)

    def _runs(self) -> str:
        """A worker is given all that its group wants to have run; its queries raise the fence and write."""
        group = self._chance.choice([*self.benches])
        bench, worker, registry = self.benches[group], self.workers[group], self.benches[group].group.tasks
        bench.redeal([worker], dict.fromkeys(sorted(registry.definitions), worker))
        waiting = [task for task in sorted(registry.definitions) if registry.owner_of(task) is None]
        for granted in bench.claim(worker, *waiting).answer.granted if waiting else ():
            self._write(granted.home or TaskHome(group, granted.task), granted.token)
        return group

    def _write(self, home: TaskHome, token: int) -> None:
        if token <= self.fence.get(home, 0):
            raise self._violated(
                f"{home} is run under token {token}, of which its sink has seen a higher one"
            )
        self.fence[home] = token
        self.happened["ran"] += 1

    def _killed(self) -> str:
        """A manager dies, and another one takes the group up as it is stored."""
        group = self._chance.choice([*self.benches])
        self.benches[group].crash()
        return group

    def _cancelled(self) -> str:
        for transfer in [*self.heard][-2:]:
            for group in self.benches:
                self._ask(group, CancelTransfer(transfer=transfer, cause="asked for"))
        return "the latest"

    def _deleted(self) -> str:
        group, task = self._chance.choice([*self.benches]), self._chance.choice(NAMES)
        home = self._home(group, task)
        if self._ask(group, DeleteTask(task=task)):
            self.alive.discard(home)
        return f"{group}/{task}"

    def _created(self) -> str:
        group, task = self._chance.choice([*self.benches]), self._chance.choice(NAMES)
        command = CreateTask(task=task, definition=definition(), target=Target.RUNNING)
        if self._ask(group, command):
            home = self._home(group, task)
            if home in self.alive:
                raise self._violated(f"{group}/{task} is created as {home}, which there is already")
            self.alive.add(home)
        return f"{group}/{task}"

    def _truth(self) -> str:
        """Each group is told what there is, and each worker stops what it is to stop."""
        for group in self.benches:
            self._stop(group)
        for transfer in self.heard:
            for group in _groups(self._word(transfer)):
                self._tell(group, transfer, self._word(transfer))
        return "to all"

    # What holds after each of them.

    def _listen(self) -> None:
        for transfer, words in self.heard.items():
            word = self._word(transfer)
            if word and (not words or words[-1] != word):
                words.append(word)
                self.happened.update(row.step.value for row in word)

    def _word(self, transfer: str) -> Word:
        """All rows of it, as one statement reads them."""
        rows = (row for bench in self.benches.values() for row in bench.store.values())
        return tuple(row for row in rows if isinstance(row, TransferRow) and row.transfer == transfer)

    def _home(self, group: str, task: str) -> TaskHome:
        live = self.benches[group].coordinator.group(group)
        row = None if live is None else live.tasks.ownership.get(task)
        return (row.home if row is not None else None) or TaskHome(group, task)

    def _holders(self) -> Iterator[tuple[TaskHome, str, str]]:
        for group, bench in self.benches.items():
            for task in bench.group.tasks.definitions:
                yield self._home(group, task), group, task

    def _check(self) -> None:
        holders = list(self._holders())
        if lost := self.alive - {home for home, _, _ in holders}:
            raise self._violated(f"no group has {sorted(map(str, lost))}")
        running = Counter(home for home, group, task in holders if self._may_run(group, task))
        if twice := [home for home, count in running.items() if count > 1]:
            raise self._violated(f"two groups may run {twice}")

    def _may_run(self, group: str, task: str) -> bool:
        registry = self.benches[group].group.tasks
        return registry.owner_of(task) is not None or registry.is_runnable(task)

    def _check_end(self) -> None:
        """Nothing is under way, and each task is in one group."""
        moving = {group: bench.group.transfers.moving for group, bench in self.benches.items()}
        if any(moving.values()):
            raise self._violated(f"it comes to no end: {moving}")
        homes = Counter(home for home, _, _ in self._holders())
        if homes != dict.fromkeys(self.alive, 1):
            raise self._violated(f"{homes} are there, and {self.alive} are to be")

    def _violated(self, what: str) -> ViolatedError:
        return ViolatedError("\n".join([what, "after:", *self.history]))


def _groups(word: Word) -> list[str]:
    """Whom a manager tells of it."""
    return sorted({name for row in word for name in (row.group, row.peer_group)})


def walk_all(seeds: range) -> Counter[str]:
    """Walk with each of the seeds; raises `ViolatedError`. Returns what has come of it, how often."""
    return sum(map(Counter, map(Walk.run, map(Walk, seeds))), Counter())


if __name__ == "__main__":
    print(walk_all(range(int(sys.argv[1]))))  # noqa: T201 - that is what it is for
