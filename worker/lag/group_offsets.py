"""Whose offsets stand in a Kafka consumer group, by the metadata beside them; rules without I/O.

Whatever commits to a group may leave a text beside each offset. A task leaves its name and the token that it
is run under, so that a later look tells its own offsets from a newer owner's and from everybody else's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Place: TypeAlias = tuple[str, int]
"""A topic and the number of one of its partitions."""

_MARK = re.compile(r"sparkherd (?P<group>[^/]+)/(?P<task>[^/]+) token (?P<token>[0-9]{1,19})\Z")


class Mark(NamedTuple):
    """Who has written an offset: a task of a group of this herd, and under which token."""

    group: str
    task: str
    token: int

    @property
    def text(self) -> str:
        """As it stands beside the offset."""
        return f"sparkherd {self.group}/{self.task} token {self.token}"


def mark_in(metadata: str) -> Mark | None:
    """The mark in the metadata of an offset; None if no task has left one."""
    found = _MARK.match(metadata)
    return None if found is None else Mark(found["group"], found["task"], int(found["token"]))


class Kept(NamedTuple):
    """Why a topic was left alone; `mark` is None if no task has written that offset."""

    topic: str
    partition: int
    mark: Mark | None


class Outcome(NamedTuple):
    """What came of telling a consumer group.

    `is_fenced` says that a newer owner of the task has written there, `has_members` that consumers are in the
    group: nothing was written then. `kept` are topics that were left alone, each with a partition whose
    offset is somebody else's, and whose.
    """

    is_fenced: bool = False
    has_members: bool = False
    kept: tuple[Kept, ...] = ()

    @property
    def kept_topics(self) -> frozenset[str]:
        """Those that were left alone."""
        return frozenset(each.topic for each in self.kept)


def judge(known: Mapping[Place, str], mine: Mark) -> Outcome:
    """Whether the offsets of a group may be written over, partition by partition.

    A topic is written as a whole or not at all: half of it would look like a task that is far behind.

    Args:
        known: the metadata beside the offsets that are there, of the partitions that are to be written.
        mine: who asks.
    """
    marks = {place: mark_in(metadata) for place, metadata in known.items()}
    own = [mark for mark in marks.values() if mark is not None and mark[:2] == mine[:2]]
    if any(mark.token > mine.token for mark in own):
        return Outcome(is_fenced=True)
    kept: dict[str, Kept] = {}
    for (topic, partition), mark in sorted(marks.items(), key=lambda each: each[0]):
        if mark is None or mark[:2] != mine[:2]:
            kept.setdefault(topic, Kept(topic, partition, mark))
    return Outcome(kept=tuple(kept.values()))


def reasons(group: str, outcome: Outcome) -> str:
    """What a person is told of a consumer group that was not written as a whole; nothing if it is fenced."""
    if outcome.has_members:
        return f"consumer group {group} has members, which commit for themselves: name another group"
    return "; ".join(
        f"consumer group {group} keeps its offsets of topic {each.topic}, for that of partition"
        f" {each.partition} is {_whose(each.mark)}: name another group, or delete them with"
        f" `kafka-consumer-groups --delete-offsets --group {group} --topic {each.topic}`"
        for each in outcome.kept
    )


def _whose(mark: Mark | None) -> str:
    return "not a task's" if mark is None else f"of task {mark.task} of group {mark.group}"
