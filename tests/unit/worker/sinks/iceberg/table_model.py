"""A table of Iceberg's in memory, and every order in which several owners' steps can be done in it.

What takes a real table two moments takes two here: a write looks for its branch first and commits then,
and makes a branch anew that is gone by then, at the newest head; so does a fast-forward, which fails if there
was a commit in between.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias
from unittest.mock import ANY

from worker.sinks.iceberg.history import Ref, Snapshot
from worker.sinks.iceberg.publishing import (
    Drop,
    FastForward,
    Found,
    GetRefs,
    GetSnapshots,
    MakeBranch,
    Publisher,
    PutTag,
    TableError,
    Write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from worker.sinks.iceberg.publishing import Ask, Result

MAIN = "main"
Script: TypeAlias = "Callable[[Model, list[Any]], Generator[Any, Any, None]]"
"""What an actor does; it puts down what came of it."""


class RowsError(Exception):
    """What a write raises whose branch is not there."""


@dataclass(frozen=True)
class Commit:
    """A snapshot, and the batches that a reader of it sees, in the order in which they came."""

    parent: int | None
    mark: str | None
    content: tuple[str, ...]


@dataclass
class Model:
    """The table.

    `compares_all` says whether any commit is in the way of a fast-forward, or only one to the head;
    `hides_parents` has every snapshot follow whatever it should follow.
    """

    compares_all: bool = True
    hides_parents: bool = False
    refs: dict[str, Ref] = field(default_factory=dict)
    commits: dict[int, Commit] = field(default_factory=dict)
    version: int = 0
    made: dict[str, int] = field(default_factory=dict)
    publishers: dict[str, Publisher] = field(default_factory=dict)

    @property
    def content(self) -> tuple[str, ...]:
        """The batches that readers see."""
        return self.commits[self.refs[MAIN].snapshot].content if MAIN in self.refs else ()

    def commit(self, who: str, parent: int | None, mark: str | None, batch: str | None) -> int:
        """A snapshot; its number does not hang on when it is made, so that states can be compared."""
        self.made[who] = self.made.get(who, 0) + 1
        at = ord(who) * 1000 + self.made[who]
        before = self.commits[parent].content if parent is not None else ()
        self.commits[at] = Commit(parent, mark, before + ((batch,) if batch else ()))
        return at

    def point(self, name: str, at: int, *, is_tag: bool = False) -> None:
        """Move a branch or a tag, or make it."""
        self.refs[name] = Ref(at, is_tag)
        self.version += 1

    def ancestors(self, at: int | None) -> Iterator[int]:
        """A snapshot and those before it, as far as they are there."""
        while at is not None and at in self.commits:
            yield at
            at = self.commits[at].parent

    def expire(self) -> None:
        """Forget all snapshots but those that a branch or a tag is at."""
        kept = {ref.snapshot for ref in self.refs.values()}
        self.commits = {at: each for at, each in self.commits.items() if at in kept}
        self.version += 1

    def moments(  # noqa: PLR0911 - one for each thing that can be asked
        self, who: str, ask: Ask, batch: str | None
    ) -> list[Callable[[Any], Any]]:
        """What an ask is made of; each is given what the one before has returned, the last one answers."""
        match ask:
            case GetRefs():
                return [lambda _: dict(self.refs)]
            case GetSnapshots(only):
                return [lambda _: self._snapshots(only)]
            case Found():
                return [lambda _: self.point(MAIN, self.commit(who, None, None, None))]
            case MakeBranch(name, at):
                return [lambda _: self._make(name, at)]
            case Write(branch, mark, is_batch):
                return [
                    lambda _: self._find(branch),
                    lambda _: self._write(who, branch, mark, batch if is_batch else None),
                ]
            case FastForward(target, branch):
                return [lambda _: self._load(target, branch), lambda seen: self._move(target, seen)]
            case PutTag(name, at):
                return [lambda _: self._tag(name, at)]
            case Drop(name, _):
                return [lambda _: self._drop(name)]

    def _snapshots(self, only: int | None) -> dict[int, Snapshot]:
        chosen = self.commits if only is None else {only: self.commits[only]} if only in self.commits else {}
        found = {at: Snapshot(each.parent, each.mark, 1) for at, each in chosen.items()}
        if self.hides_parents and only in found:
            return {only: replace(found[only], parent=ANY)}
        return found

    def _make(self, name: str, at: int) -> None:
        if at not in self.commits:
            raise TableError("no such snapshot")
        if name not in self.refs:
            self.point(name, at)

    def _find(self, branch: str) -> None:
        if branch not in self.refs:
            raise RowsError(branch)

    def _write(self, who: str, branch: str, mark: str, batch: str | None) -> None:
        parent = self.refs.get(branch, self.refs[MAIN]).snapshot
        self.point(branch, self.commit(who, parent, mark, batch))

    def _load(self, target: str, branch: str) -> tuple[int, int, int]:
        if branch not in self.refs:
            raise TableError("no such branch")
        old, new = self.refs[target].snapshot, self.refs[branch].snapshot
        if old not in self.ancestors(new):
            raise TableError("not an ancestor")
        return self.version, old, new

    def _move(self, target: str, seen: tuple[int, int, int]) -> None:
        version, old, new = seen
        if self.version != version if self.compares_all else self.refs[target].snapshot != old:
            raise TableError("somebody else has committed")
        self.point(target, new)

    def _tag(self, name: str, at: int) -> None:
        if at not in self.commits:
            raise TableError("no such snapshot")
        self.point(name, at, is_tag=True)

    def _drop(self, name: str) -> None:
        if self.refs.pop(name, None) is not None:
            self.version += 1


@dataclass
class Actor:
    """Somebody at the table, between two moments."""

    who: str
    steps: Generator[Any, Any, None]
    outcome: list[Any]
    loses_answers: bool
    left: list[Callable[[Any], Any]] = field(default_factory=list)
    seen: Any = None
    is_over: bool = False
    is_forward: bool = False

    def choices(self) -> tuple[bool, ...]:
        """Whether the answer to what it does next is lost; that can be of a fast-forward's last moment."""
        if self.is_over:
            return ()
        may_be_lost = self.loses_answers and self.is_forward and len(self.left) == 1
        return (False, True) if may_be_lost else (False,)

    def begin(self, model: Model) -> None:
        """Up to the first thing that it asks for."""
        self._go_on(model, lambda: next(self.steps))

    def go_on(self, model: Model, *, is_lost: bool) -> None:
        """One moment."""
        moment, *self.left = self.left
        try:
            self.seen = moment(self.seen)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is thrown into the steps
            self.left = []
            self._throw(model, error)
            return
        if is_lost:
            self._throw(model, TableError("no answer"))
        elif not self.left:
            answer, self.seen = self.seen, None
            self._go_on(model, lambda: self.steps.send(answer))

    def _throw(self, model: Model, error: Exception) -> None:
        self.seen = None
        self._go_on(model, lambda: self.steps.throw(error))

    def _go_on(self, model: Model, ask: Callable[[], Any]) -> None:
        try:
            asked, batch = ask()
        except StopIteration:
            self.is_over = True
            return
        if callable(asked):
            self.left, self.is_forward = [asked], False
        else:
            self.left, self.is_forward = model.moments(self.who, asked, batch), isinstance(asked, FastForward)


class Explorer:
    """Does what several actors do in every order, each state once."""

    def __init__(
        self,
        start: Callable[[], Model],
        scripts: dict[str, Script],
        check: Callable[[Model, dict[str, Any]], None],
    ) -> None:
        """`check` is called in each state, with what came of each actor so far."""
        self._start = start
        self._scripts = scripts
        self._check = check
        self.states = 0
        self.ends: set[str] = set()
        self.loses_answers: frozenset[str] = frozenset()

    def run(self) -> None:
        """All of it. Generators cannot be copied: all ways but one from a state begin at the beginning."""
        seen: set[Any] = set()
        left: list[tuple[tuple[str, bool], ...]] = [()]
        while left:
            path = left.pop()
            model, actors = self._come_to(path)
            while (key := self._key(model, actors)) not in seen:
                seen.add(key)
                outcomes = {actor.who: actor.outcome for actor in actors}
                self._check(model, outcomes)
                ways = [(actor.who, lost) for actor in actors for lost in actor.choices()]
                if not ways:
                    self.ends.add(f"{model.content} {outcomes}")
                    break
                left += [(*path, way) for way in ways[1:]]
                path = (*path, ways[0])
                self._go(model, actors, ways[0])
            for actor in actors:
                actor.steps.close()
        self.states = len(seen)

    def _come_to(self, path: tuple[tuple[str, bool], ...]) -> tuple[Model, list[Actor]]:
        model = self._start()
        actors = []
        for who, script in self._scripts.items():
            outcome: list[Any] = []
            actors.append(Actor(who, script(model, outcome), outcome, who in self.loses_answers))
        for actor in actors:
            actor.begin(model)
        for way in path:
            self._go(model, actors, way)
        return model, actors

    def _go(self, model: Model, actors: list[Actor], way: tuple[str, bool]) -> None:
        [actor] = [actor for actor in actors if actor.who == way[0]]
        actor.go_on(model, is_lost=way[1])

    def _key(self, model: Model, actors: list[Actor]) -> Any:
        local = tuple(
            (_place(actor.steps), str(actor.outcome), len(actor.left), _at(model, actor.seen))
            for actor in actors
        )
        own = tuple(
            str([value for name, value in vars(each).items() if name not in _SAME])
            for each in model.publishers.values()
        )
        return frozenset(model.refs.items()), frozenset(model.commits.items()), local, own


def _place(steps: Any) -> str:
    """Where a generator is, and those that it is in, with all that they know."""
    places = []
    while steps is not None and getattr(steps, "gi_frame", None) is not None:
        frame = steps.gi_frame
        known = {name: value for name, value in frame.f_locals.items() if name not in _NOT_KNOWN}
        places.append(f"{frame.f_code.co_name} {frame.f_lasti} {known}")
        steps = steps.gi_yieldfrom if steps.gi_yieldfrom is not None else frame.f_locals.get("steps")
    return "\n".join(places)


_NOT_KNOWN = {"self", "model", "steps", "own", "outcome", "answer", "now", "error"}
"""What does not say what a generator does next: kept apart, or used at once when it was told."""
_SAME = {"_owner", "_target", "_draw", "_digest", "_tag"}
"""What never changes of a publisher; which names it has drawn is no matter, as none comes twice."""


def _at(model: Model, seen: Any) -> Any:
    """Of a fast-forward that has begun: whether there was a commit since, not how many."""
    return seen and (seen[0] == model.version, *seen[1:])


def driven(steps: Generator[Ask, Any, Result], batch: str | None = None) -> Generator[Any, Any, Result]:
    """What a generator of `publishing` asks for, beside the batch that it is about."""
    try:
        ask = next(steps)
        while True:
            try:
                answer = yield ask, batch
            except Exception as error:  # noqa: BLE001 - as the real table does
                ask = steps.throw(error)
            else:
                ask = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
    finally:
        steps.close()


def at_once(model: Model, who: str, steps: Generator[Ask, Any, Result], batch: str | None = None) -> Result:
    """All of it, while nobody else does anything."""
    wanted = driven(steps, batch)
    try:
        ask, about = next(wanted)
        while True:
            answer = None
            for moment in model.moments(who, ask, about):
                answer = moment(answer)
            ask, about = wanted.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result
