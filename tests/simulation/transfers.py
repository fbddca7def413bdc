"""A transfer between two groups, whose managers die between any two events, in every order of these events.

What is enumerated is not time but order: a state is what both groups have stored, what the fence in the sink
holds, and what queries of former owners still run. From each state every event is tried that may come next;
each is taken by coordinators that have just read what is stored, so that a death of either manager, or a
takeover, lies between any two. Word from one group to the other may be of any earlier moment, and come again.
"""

from __future__ import annotations

import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from manager.core.commands import CreateTask, DeleteTask
from manager.core.stored_rows import OwnershipRow, TaskRow, TransferRow
from manager.core.transfer_commands import AdvanceTransfer, CancelTransfer, StartTransfer
from protocol.messages.tasks import TaskHome
from protocol.states import Target, TaskState, TransferStep
from tests.unit.manager.core.bench import Bench, definition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ID: Final = "move"
TASK: Final = "t"
HOME: Final = TaskHome("a", TASK)


class ViolatedError(AssertionError):
    """An invariant does not hold; the text says which one, and after which events."""


@dataclass(slots=True)
class Pair:
    """Both groups and the world around them.

    `heard` is what either group was seen to have stored while one of them had anything of the transfer: word
    may still be of that. `fence` is the highest token that the sink has seen of each home.
    """

    benches: dict[str, Bench]
    heard: dict[str, list[tuple[TransferRow, ...]]] = field(default_factory=lambda: {"a": [], "b": []})
    fence: dict[TaskHome, int] = field(default_factory=dict)
    history: tuple[str, ...] = ()

    def reloaded(self) -> Pair:
        """As managers have it that have just read what is stored."""
        copied = Pair({}, {name: list(words) for name, words in self.heard.items()}, dict(self.fence))
        copied.history = self.history
        for name, bench in self.benches.items():
            fresh = Bench(name)
            fresh.now, fresh.store = bench.now + 1, dict(bench.store)
            fresh.reload()
            copied.benches[name] = fresh
        return copied

    def key(self) -> Any:
        """What tells this state from others; times, tokens but for their order, and history do not."""
        stored = {
            name: sorted(
                (type(row).__name__, row.key, _told(row))
                for row in bench.store.values()
                if isinstance(row, TaskRow | OwnershipRow | TransferRow)
            )
            for name, bench in self.benches.items()
        }
        heard = {
            name: [[row.step.value for row in word] for word in words] for name, words in self.heard.items()
        }
        return msgspec.json.encode([stored, heard])

    # What may come next.

    def events(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """Each with a name."""
        a, b = self.benches["a"], self.benches["b"]
        if "begin" not in self.history and TASK in a.group.tasks.definitions:
            yield "begin", lambda: a.ask(StartTransfer(transfer=ID, to_group="b", tasks={TASK: TASK}))
        for row in self._rows("a"):
            yield f"cancel at {row.step.value}", lambda: a.ask(CancelTransfer(transfer=ID, cause="asked for"))
        for name, peer in (("a", b), ("b", a)):
            for at, word in enumerate(self.heard[peer.name]):
                yield f"{name} is told word {at}", self._telling(self.benches[name], word)
        yield from self._of_workers()
        if TASK not in b.group.tasks.definitions:
            yield "the name is taken", lambda: b.ask(_creation())
        if (rows := self._rows("a")) and all(row.is_over for row in rows):
            yield "a forgets", self._forgetting
        yield "deleted in a", lambda: a.ask(DeleteTask(task=TASK))

    def _of_workers(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """The only worker of each group does what its group says, and writes; or dies."""
        for name, bench in self.benches.items():
            row = bench.group.tasks.ownership.get(TASK)
            if row is None or TASK not in bench.group.tasks.definitions:
                continue
            if row.owner is not None and bench.group.tasks.is_to_stop(TASK):
                yield f"{name} stops", self._stopping(bench, row)
            if row.owner is None and bench.group.tasks.is_runnable(TASK):
                yield f"{name} runs", lambda bench=bench: self._run(bench)  # type: ignore[misc]

    def _forgetting(self) -> None:
        """The first group has given so many others since that it does not remember this one."""
        bench = self.benches["a"]
        for row in self._rows("a"):
            del bench.store[type(row), row.key]
        bench.reload()

    def _telling(self, bench: Bench, word: tuple[TransferRow, ...]) -> Callable[[], object]:
        return lambda: bench.ask(AdvanceTransfer(transfer=ID, peers=word))

    def _stopping(self, bench: Bench, row: OwnershipRow) -> Callable[[], object]:
        return lambda: bench.report(str(row.owner), TASK, row.token, TaskState.STOPPED)

    def _run(self, bench: Bench) -> None:
        """The worker joins anew, is granted the task, and its query raises the fence and writes."""
        [worker] = bench.group.members or bench.stable(None, kind="sparkherd")
        bench.redeal([worker], {TASK: worker})
        for granted in bench.claim(worker, TASK).answer.granted:
            home = granted.home or TaskHome(bench.name, TASK)
            if granted.token <= self.fence.get(home, 0):
                raise ViolatedError(f"{bench.name} runs under token {granted.token}, which {home} has seen")
            self.fence[home] = granted.token

    def _rows(self, name: str) -> tuple[TransferRow, ...]:
        return tuple(row for row in self.benches[name].store.values() if isinstance(row, TransferRow))

    # What holds after every event.

    def check(self) -> None:
        """Raises `ViolatedError`."""
        holders = [name for name in self.benches if self._has_home(name)]
        runners = [name for name in holders if self._may_run(name)]
        if not holders and "deleted in a" not in self.history:
            raise ViolatedError("the task is in neither group")
        if len(runners) > 1:
            raise ViolatedError("both groups run it")
        for name in ("a", "b"):
            word = self._rows(name)
            if (word or self._rows("b" if name == "a" else "a")) and word not in self.heard[name]:
                self.heard[name].append(word)

    def _has_home(self, name: str) -> bool:
        """Whether the group has a task that its sink knows as the one that was there at first."""
        registry = self.benches[name].group.tasks
        row = registry.ownership.get(TASK)
        return TASK in registry.definitions and row is not None and (row.home or TaskHome(name, TASK)) == HOME

    def _may_run(self, name: str) -> bool:
        registry = self.benches[name].group.tasks
        return registry.owner_of(TASK) is not None or registry.is_runnable(TASK)


def beginning() -> Pair:
    """Group A runs the task, group B has a worker and does not know it."""
    a, b = Bench("a"), Bench("b")
    [worker] = a.herd(1, TASK)
    for token in (1, 2):
        a.release(worker, **{TASK: token})
        a.claim(worker, TASK)
    b.worker_group(1)
    b.deal(list(b.group.members), {})
    pair = Pair({"a": a, "b": b})
    pair.fence[HOME] = a.group.tasks.ownership[TASK].token
    pair.check()
    return pair


def _creation() -> CreateTask:
    return CreateTask(task=TASK, definition=definition(other=1), target=Target.RUNNING)


def _told(row: TaskRow | OwnershipRow | TransferRow) -> list[Any]:
    match row:
        case TaskRow():
            return [row.target.value, bytes(row.definition).decode()]
        case OwnershipRow():
            return [row.owner is not None, row.state.value, str(row.home)]
        case _:
            return [row.step.value, row.leaves]


def enumerate_histories(deepest: int | None = None) -> Mapping[str, int]:
    """Try every event in every state that can come about, and see that each can still come to an end.

    Args:
        deepest: states that only more events than these lead to are not looked at; all are without it.

    Returns:
        How many states there are, and how many events were tried.

    Raises:
        ViolatedError: an invariant does not hold.
    """
    first = beginning()
    known: dict[Any, Pair] = {first.key(): first}
    pending, tried = deque([first]), 0
    while pending:
        state = pending.popleft()
        for name in [name for name, _ in state.reloaded().events()]:
            after = state.reloaded()
            event = dict(after.events())[name]
            after.history = (*state.history, name)
            tried += 1
            try:
                event()
                after.check()
            except ViolatedError as error:
                raise ViolatedError(f"{error}, after: {'; '.join(after.history)}") from None
            key = after.key()
            if key not in known and (deepest is None or len(after.history) <= deepest):
                known[key] = after
                pending.append(after)
    for state in known.values():
        _come_to_an_end(state.reloaded())
    return {"states": len(known), "events": tried}


def _come_to_an_end(pair: Pair) -> None:
    """Told the truth from now on, both groups come to the end of the transfer, and one has the task."""
    for _ in range(6):
        for name, peer in (("a", "b"), ("b", "a")):
            for event, act in list(pair._of_workers()):
                if event == f"{name} stops":
                    act()
            pair._telling(pair.benches[name], pair._rows(peer))()
            pair.check()
    steps = {row.step for name in ("a", "b") for row in pair._rows(name)}
    if not steps <= {TransferStep.DONE, TransferStep.CANCELLED}:
        raise ViolatedError(f"it comes to no end: {steps}, after: {'; '.join(pair.history)}")


if __name__ == "__main__":
    print(enumerate_histories(int(sys.argv[1])))  # noqa: T201 - that is what it is for
