"""Members of a group as lines of a table; what a worker tells of itself may be anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from manager.console.pages.links import member_api, worker_path
from protocol.states import TaskState
from protocol.worker_metadata import WorkerMetadata, read_metadata

if TYPE_CHECKING:
    from manager.core.commands import OwnerCounts, TaskCounts
    from protocol.messages.groups import DescribedMember, DescribeGroupResponse

COLOURS: Final = 12
"""How many the style sheet has; with more workers they begin anew."""
UUID_LENGTH: Final = 36
SILENT_SHARE: Final = 0.5
"""Of its session that a worker was silent for, to be worth a remark."""


@dataclass(frozen=True, slots=True)
class MemberLabel:
    """How a worker is called and coloured wherever it is named; `name` is its client or instance id."""

    id: str
    name: str
    colour: int
    path: str


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A worker with its tasks, before it is put into words: of a thousand, few are shown.

    `silent` says that it has not been heard of for a good part of its session.
    """

    told: DescribedMember
    label: MemberLabel
    is_leader: bool
    owned: OwnerCounts
    silent: bool
    api: str

    @property
    def failed(self) -> int:
        """How many of its tasks have."""
        return self.owned.states.get(TaskState.FAILED.value, 0)

    @property
    def trouble(self) -> tuple[bool, bool, str]:
        """What it is sorted by where those with trouble come first."""
        return not self.silent, not self.failed, self.label.name


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A worker in one line of a table; `load` is what its tasks measure, if they do."""

    id: str
    name: str
    instance_id: str | None
    host: str
    colour: int
    is_leader: bool
    is_draining: bool
    tasks: int
    running: int
    failed: int
    capacity: float
    max_tasks: int | None
    load: float | None
    load_percent: int | None
    labels: tuple[tuple[str, str], ...]
    ui: str | None
    heard_at_ms: int
    session_ms: int
    silent: bool
    api: str
    path: str


def member_labels(group: DescribeGroupResponse) -> dict[str, MemberLabel]:
    """All members by id, in the order of their names; each has the colour of its place in that order."""
    ordered = sorted(group.members, key=lambda member: (_name(member), member.member_id))
    names = Counter(_name(member) for member in ordered)
    return {
        member.member_id: MemberLabel(
            member.member_id,
            _told_apart(member, names),
            number % COLOURS,
            worker_path(group.group, member.member_id),
        )
        for number, member in enumerate(ordered)
    }


def known_members(group: DescribeGroupResponse, counts: TaskCounts, now_ms: int) -> list[KnownMember]:
    """The members in the order of their names."""
    told = {member.member_id: member for member in group.members}
    return [
        KnownMember(
            told=told[label.id],
            label=label,
            is_leader=label.id == group.leader_id,
            owned=counts.of(label.id),
            silent=_is_silent(told[label.id], now_ms),
            api=member_api(group.group, label.id),
        )
        for label in member_labels(group).values()
    ]


def _is_silent(member: DescribedMember, now_ms: int) -> bool:
    return now_ms - member.last_heartbeat_ms > SILENT_SHARE * member.session_timeout_ms


def member_line(known: KnownMember) -> MemberLine:
    """A member as it is shown."""
    member, label, owned = known.told, known.label, known.owned
    told = metadata_of(member)
    return MemberLine(
        id=label.id,
        name=label.name,
        instance_id=member.instance_id,
        host=member.host,
        colour=label.colour,
        is_leader=known.is_leader,
        is_draining=member.draining,
        tasks=owned.tasks,
        running=owned.states.get(TaskState.RUNNING.value, 0),
        failed=known.failed,
        capacity=told.capacity,
        max_tasks=told.max_tasks,
        load=None if owned.load is None else round(owned.load, 2),
        load_percent=_percent(owned.load, told.capacity),
        labels=tuple(sorted(told.labels.items())),
        ui=_web_address(told.url),
        heard_at_ms=member.last_heartbeat_ms,
        session_ms=member.session_timeout_ms,
        silent=known.silent,
        api=known.api,
        path=label.path,
    )


def _percent(load: float | None, capacity: float) -> int | None:
    if load is None or capacity <= 0:
        return None
    return round(min(100 * round(load, 2) / capacity, 999))


def _name(member: DescribedMember) -> str:
    """What a person called it; the rest of a member id is there to tell processes apart."""
    return member.instance_id or member.client_id or member.member_id


def _told_apart(member: DescribedMember, names: Counter[str]) -> str:
    """Its name, with the beginning of what is unique in its id where others have the same."""
    name = _name(member)
    return name if names[name] == 1 else f"{name} {member.member_id[-UUID_LENGTH:][:8]}"


def metadata_of(member: DescribedMember) -> WorkerMetadata:
    """What a worker told when it joined; of a member of another kind, nothing."""
    try:
        return read_metadata(member.metadata)
    except msgspec.ValidationError:
        return WorkerMetadata()


def _web_address(url: str | None) -> str | None:
    """A member says of itself what it likes; a link may lead to a web page and to nothing else."""
    try:
        return url if url is not None and urlsplit(url).scheme in {"http", "https"} else None
    except ValueError:
        return None
