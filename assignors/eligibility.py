"""Who may run a task: its pin and its labels, the same for every built-in assignor.

* A pin (`worker`) names a worker by its instance id or its client id. While members of that name are in the
  group, only they may run the task; while none is, the pin is void. (Datalink's sticky binding.)
* A task with labels may only run on members that have them all, with the same values.
* Both hold together, so a task pinned to a member without its labels runs nowhere until that changes.
"""

from __future__ import annotations

import re
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from assignors.base import Member, Task

_UUID4 = re.compile(r"-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\Z")

Members: TypeAlias = tuple[int, ...]
"""Indexes of members, ascending."""

_Needs: TypeAlias = tuple[str | None, tuple[tuple[str, str], ...]]
_NONE: _Needs = (None, ())


class Eligibility:
    """Which of `members` may run a task; members are told by their index, in the order given."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members
        self._everyone = tuple(range(len(members)))
        self._named: dict[str, list[int]] = {}
        for index, member in enumerate(members):
            for name in worker_names(member):
                self._named.setdefault(name, []).append(index)

    def of(self, task: Task) -> Members:
        """The members that may run `task`."""
        return self._having(_needs(task))

    def groups(self, tasks: Iterable[Task]) -> list[tuple[Members, list[Task]]]:
        """`tasks`, by name, put together by who may run them, narrowest first; nobody's are left out."""
        alike: dict[_Needs, list[Task]] = {}
        for task in tasks:
            alike.setdefault(_needs(task), []).append(task)
        groups: dict[Members, list[Task]] = {}
        for needs, some in alike.items():
            groups.setdefault(self._having(needs), []).extend(some)
        groups.pop((), None)
        for group in groups.values():
            group.sort(key=attrgetter("name"))
        return sorted(groups.items(), key=lambda item: (len(item[0]), item[0]))

    def why_nobody(self, task: Task) -> str | None:
        """Why no member may run `task`, for a person to read; None if somebody may."""
        if self.of(task):
            return None
        labels = ", ".join(f"{key}={value}" for key, value in sorted(task.labels.items()))
        if task.worker is not None and task.worker in self._named:
            return f"worker {task.worker}, which it is pinned to, lacks the labels {labels}"
        return f"no worker has the labels {labels}" if labels else "there are no workers"

    def _having(self, needs: _Needs) -> Members:
        worker, labels = needs
        pinned = self._everyone if worker is None else self._named.get(worker, self._everyone)
        if not labels:
            return tuple(pinned)
        return tuple(index for index in pinned if _has(self._members[index], labels))


def worker_names(member: Member) -> set[str]:
    """What a pin may call `member`: its instance id, and its member id without the `-<uuid4>` at its end."""
    client_id = _UUID4.sub("", member.member_id)
    return {client_id, member.instance_id or client_id}


def _needs(task: Task) -> _Needs:
    """What tells who may run `task`; equal needs, equal members."""
    if task.worker is None and not task.labels:
        return _NONE
    return task.worker, tuple(sorted(task.labels.items()))


def _has(member: Member, labels: tuple[tuple[str, str], ...]) -> bool:
    return all(member.labels.get(key) == value for key, value in labels)
