"""Who may run a task: its pin and its labels, the same for every built-in assignor.

* A pin (`worker`) names a worker by its instance id or its client id. While members of that name are in the
  group, only they may run the task; while none is, the pin is void. (Datalink's sticky binding.)
* A task with labels may only run on members that have them all, with the same values.
* A task may not run on a member whose Spark is known to lack a format that it reads or writes.
* All of them hold together, so a task pinned to a member without its labels runs nowhere until that changes.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeAlias

from protocol.connectors import NOTHING, Needs, package_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from assignors.base import Member, Task

_UUID4 = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")

Members: TypeAlias = tuple[int, ...]
"""Indexes of members, ascending."""

MAX_WHY_LENGTH: Final = 500
"""Characters of a reason: labels and formats of a definition may be of any number and length."""

_Terms: TypeAlias = tuple[str | None, tuple[tuple[str, str], ...], Needs]
_NONE: _Terms = (None, (), NOTHING)


class Eligibility:
    """Which of `members` may run a task; members are told by their index, in the order given."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._able: dict[_Terms, Members] = {}
        self._reasons: dict[_Terms, str] = {}
        self._everyone = tuple(range(len(members)))
        self._named: dict[str, list[int]] = {}
        for index, member in enumerate(members):
            for name in worker_names(member):
                self._named.setdefault(name, []).append(index)

    def of(self, task: Task) -> Members:
        """The members that may run `task`."""
        return self._having(_terms(task))

    def groups(self, tasks: Iterable[Task]) -> list[tuple[Members, list[Task]]]:
        """`tasks`, by name, put together by who may run them, narrowest first; nobody's are left out."""
        alike: dict[_Terms, list[Task]] = {}
        for task in tasks:
            alike.setdefault(_terms(task), []).append(task)
        groups: dict[Members, list[Task]] = {}
        for terms, some in alike.items():
            groups.setdefault(self._having(terms), []).extend(some)
        groups.pop((), None)
        for group in groups.values():
            group.sort(key=attrgetter("name"))
        return sorted(groups.items(), key=lambda item: (len(item[0]), item[0]))

    def why_nobody(self, task: Task) -> str | None:
        """Why no member may run `task`, for a person to read, in `MAX_WHY_LENGTH`; None if somebody may."""
        if self.of(task):
            return None
        terms = _terms(task)
        if (why := self._reasons.get(terms)) is None:
            why = self._why_nobody(task)
            why = why if len(why) <= MAX_WHY_LENGTH else f"{why[: MAX_WHY_LENGTH - 2]} …"
            self._reasons[terms] = why
        return why

    def _why_nobody(self, task: Task) -> str:
        if missing := self._missing(task.needs):
            return missing
        labels = ", ".join(f"{key}={value}" for key, value in sorted(task.labels.items()))
        if task.worker is not None and task.worker in self._named:
            return f"worker {task.worker}, which it is pinned to, lacks {_lacked(labels, task.needs)}"
        if not labels and not task.needs:
            return "there are no workers"
        return f"no worker has {_lacked(labels, task.needs)}"

    def _missing(self, needs: Needs) -> str | None:
        """A format that no member has, and what to start one with."""
        for kind, name in _each(needs):
            if self._members and all(_lacks(member, name) for member in self._members):
                spark = next((member.spark for member in self._members if member.spark), None)
                package = package_of(name, spark)
                return f"no worker has the {kind} `{name}`; start one with --packages {package}"
        return None

    def _having(self, terms: _Terms) -> Members:
        """Tasks are alike, most of them: each kind is held against the members once."""
        if (able := self._able.get(terms)) is None:
            able = self._able[terms] = self._find(terms)
        return able

    def _find(self, terms: _Terms) -> Members:
        worker, labels, needs = terms
        pinned = self._everyone if worker is None else self._named.get(worker, self._everyone)
        if not labels and not needs:
            return tuple(pinned)
        return tuple(
            index
            for index in pinned
            if _has(self._members[index], labels) and _can(self._members[index], needs)
        )


def worker_names(member: Member) -> set[str]:
    """What a pin may call `member`: its instance id, and its member id without the `-<uuid4>` at its end."""
    client_id = _UUID4.sub("", member.member_id)
    return {client_id, member.instance_id or client_id}


def _terms(task: Task) -> _Terms:
    """What tells who may run `task`; equal terms, equal members."""
    if task.worker is None and not task.labels and not task.needs:
        return _NONE
    return task.worker, tuple(sorted(task.labels.items())), task.needs


def _each(needs: Needs) -> Iterator[tuple[str, str]]:
    """Each format, and what it is needed as."""
    yield from (("source", name) for name in needs.sources)
    if needs.sink is not None:
        yield "sink", needs.sink


def _lacks(member: Member, name: str) -> bool:
    return member.formats is not None and member.formats.lack(name)


def _can(member: Member, needs: Needs) -> bool:
    return not any(_lacks(member, name) for _, name in _each(needs))


def _lacked(labels: str, needs: Needs) -> str:
    """Labels and formats as a list for people."""
    formats = [f"the {kind} `{name}`" for kind, name in _each(needs)]
    return " and ".join([*([f"the labels {labels}"] if labels else []), *formats])


def _has(member: Member, labels: tuple[tuple[str, str], ...]) -> bool:
    return all(member.labels.get(key) == value for key, value in labels)
