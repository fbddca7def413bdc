"""Members of a group as lines of a table; what a worker tells of itself may be anything."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from manager.console.pages.links import member_api, worker_path
from protocol.task_metrics import figure
from protocol.worker_metadata import WorkerMetadata, read_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from protocol.messages.groups import DescribedMember, DescribeGroupResponse
    from protocol.messages.tasks import TaskView

COLOURS: Final = 12
"""How many the style sheet has; with more workers they begin anew."""
UUID_LENGTH: Final = 36
SILENT_SHARE: Final = 0.5
"""Of its session that a worker was silent for, to be worth a remark."""


@dataclass(frozen=True, slots=True)
class MemberLine:
    """A worker. `name` is its client or instance id, `load` what its tasks measure, if they do.

    `silent` says that it has not been heard of for a good part of its session.
    """

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


def member_lines(
    group: DescribeGroupResponse, tasks: Iterable[TaskView], now_ms: int
) -> tuple[MemberLine, ...]:
    """The members by name; each has the colour of its place in that order."""
    owned: dict[str | None, list[TaskView]] = {}
    for task in tasks:
        owned.setdefault(task.owner, []).append(task)
    ordered = sorted(group.members, key=lambda member: (_name(member), member.member_id))
    names = Counter(_name(member) for member in ordered)
    return tuple(
        _line(
            group,
            member,
            owned.get(member.member_id, ()),
            name=_told_apart(member, names),
            colour=number % COLOURS,
            now_ms=now_ms,
        )
        for number, member in enumerate(ordered)
    )


def _line(
    group: DescribeGroupResponse,
    member: DescribedMember,
    tasks: Sequence[TaskView],
    *,
    name: str,
    colour: int,
    now_ms: int,
) -> MemberLine:
    told = metadata_of(member)
    states = Counter(task.state for task in tasks)
    load = _load(tasks)
    return MemberLine(
        id=member.member_id,
        name=name,
        instance_id=member.instance_id,
        host=member.host,
        colour=colour,
        is_leader=member.member_id == group.leader_id,
        is_draining=member.draining,
        tasks=len(tasks),
        running=states["RUNNING"],
        failed=states["FAILED"],
        capacity=told.capacity,
        max_tasks=told.max_tasks,
        load=load,
        load_percent=None
        if load is None or told.capacity <= 0
        else round(min(100 * load / told.capacity, 999)),
        labels=tuple(sorted(told.labels.items())),
        ui=_web_address(told.url),
        heard_at_ms=member.last_heartbeat_ms,
        session_ms=member.session_timeout_ms,
        silent=now_ms - member.last_heartbeat_ms > SILENT_SHARE * member.session_timeout_ms,
        api=member_api(group.group, member.member_id),
        path=worker_path(group.group, member.member_id),
    )


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


def _load(tasks: Iterable[TaskView]) -> float | None:
    measured = [load for task in tasks if (load := figure(task.metrics, "load")) is not None]
    return round(sum(measured), 2) if measured else None


def _web_address(url: str | None) -> str | None:
    """A member says of itself what it likes; a link may lead to a web page and to nothing else."""
    try:
        return url if url is not None and urlsplit(url).scheme in {"http", "https"} else None
    except ValueError:
        return None
