"""A table of Iceberg's in memory, and every order in which several owners' steps can be done in it.

What takes a real table two moments takes two here: a write puts its files down first and commits then. The
commit compares the branch's head with the one that it is to follow, in the very step that moves it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from worker.sinks.iceberg.history import Marked, Seen
from worker.sinks.iceberg.publishing import Look, Publisher, TableError, Write

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from worker.sinks.iceberg.publishing import Ask, Result

MAIN = "main"
Script: TypeAlias = "Callable[[Model, list[Any]], Generator[Any, Any, None]]"
"""What an actor does; it puts down what came of it."""


@dataclass(frozen=True)
class Commit:
    """A snapshot, and the batches that a reader of it sees, in the order in which they came."""

    parent: int | None
    mark: str | None
    content: tuple[str, ...]


@dataclass
class Model:
    """The table.

    `compares` says whether a commit compares the head with the one that it is to follow, as ours do; without
    it, the commit looks for the head by itself, as Iceberg's do.
    """

    compares: bool = True
    head: int | None = None
    tag: int | None = None
    commits: dict[int, Commit] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=dict)
    publishers: dict[str, Publisher] = field(default_factory=dict)

    @property
    def content(self) -> tuple[str, ...]:
        """The batches that readers see."""
        return () if self.head is None else self.commits[self.head].content

    def commit(self, who: str, mark: str | None, batch: str | None) -> None:
        """A snapshot at the head; its number does not hang on when it is made: states can be compared."""
        self.made[who] = self.made.get(who, 0) + 1
        at = ord(who) * 1000 + self.made[who]
        self.commits[at] = Commit(self.head, mark, self.content + ((batch,) if batch else ()))
        self.head = at
        if mark is not None:
            self.tag = at

    def ancestors(self, at: int | None) -> Iterator[int]:
        """A snapshot and those before it, as far as they are there."""
        while at is not None and at in self.commits:
            yield at
            at = self.commits[at].parent

    def expire(self) -> None:
        """Forget all snapshots but those that the branch or the tag is at."""
        self.commits = {at: each for at, each in self.commits.items() if at in {self.head, self.tag}}

    def moments(self, who: str, ask: Ask, batch: str | None) -> list[Callable[[Any], Any]]:
        """What an ask is made of; each is given what the one before has returned, the last one answers."""
        match ask:
            case Look():
                return [lambda _: self.seen()]
            case Write(head, mark, is_batch):
                about = batch if is_batch else None
                return [lambda _: None, lambda _: self._write(who, head, mark, about)]

    def seen(self) -> Seen:
        """What a look finds."""
        chain = list(self.ancestors(self.head))
        marked = next((at for at in chain if self.commits[at].mark is not None), None)
        is_whole = marked is not None or not chain or self.commits[chain[-1]].parent is None
        return Seen(self.head, self.head is not None, self._marked(marked), is_whole, self._marked(self.tag))

    def _marked(self, at: int | None) -> Marked | None:
        mark = None if at is None else self.commits[at].mark
        return None if mark is None else Marked(mark, 1)

    def _write(self, who: str, head: int | None, mark: str, batch: str | None) -> None:
        if self.compares and self.head != head:
            raise TableError("the head has moved")
        self.commit(who, mark, batch)


@dataclass
class Actor:
    """Somebody at the table, between two moments."""

    who: str
    steps: Generator[Any, Any, None]
    outcome: list[Any]
    loses_answers: bool
    left: list[Callable[[Any], Any]] = field(default_factory=list)
    found: Any = None
    is_over: bool = False
    is_write: bool = False

    def choices(self) -> tuple[bool, ...]:
        """Whether the answer to what it does next is lost; that can be of a commit."""
        if self.is_over:
            return ()
        may_be_lost = self.loses_answers and self.is_write and len(self.left) == 1
        return (False, True) if may_be_lost else (False,)

    def begin(self, model: Model) -> None:
        """Up to the first thing that it asks for."""
        self._go_on(model, lambda: next(self.steps))

    def go_on(self, model: Model, *, is_lost: bool) -> None:
        """One moment."""
        moment, *self.left = self.left
        try:
            self.found = moment(self.found)
        except Exception as error:  # noqa: BLE001 - whatever the model raises is thrown into the steps
            self.left = []
            self._throw(model, error)
            return
        if is_lost:
            self._throw(model, TableError("no answer"))
        elif not self.left:
            answer, self.found = self.found, None
            self._go_on(model, lambda: self.steps.send(answer))

    def _throw(self, model: Model, error: Exception) -> None:
        self.found = None
        self._go_on(model, lambda: self.steps.throw(error))

    def _go_on(self, model: Model, ask: Callable[[], Any]) -> None:
        try:
            asked, batch = ask()
        except StopIteration:
            self.is_over = True
            return
        if callable(asked):
            self.left, self.is_write = [asked], False
        else:
            self.left, self.is_write = model.moments(self.who, asked, batch), isinstance(asked, Write)


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
        local = tuple((_place(actor.steps), str(actor.outcome), len(actor.left)) for actor in actors)
        own = tuple(str(each._seen) for each in model.publishers.values())
        return model.head, model.tag, frozenset(model.commits.items()), local, own


def _place(steps: Any) -> str:
    """Where a generator is, and those that it is in, with all that they know."""
    places = []
    while steps is not None and getattr(steps, "gi_frame", None) is not None:
        frame = steps.gi_frame
        known = {name: value for name, value in frame.f_locals.items() if name not in _NOT_KNOWN}
        places.append(f"{frame.f_code.co_name} {frame.f_lasti} {known}")
        steps = steps.gi_yieldfrom if steps.gi_yieldfrom is not None else frame.f_locals.get("steps")
    return "\n".join(places)


_NOT_KNOWN = {"self", "model", "steps", "own", "outcome", "answer", "error"}
"""What does not say what a generator does next: kept apart, or used at once when it was told."""


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
