"""Groups as admin clients see them, and where they are coordinated (protocol §3, §5)."""

from __future__ import annotations

from typing import Annotated

import msgspec

from protocol.messages.base import PageQuery, Request, Response, Text, null
from protocol.messages.heap import HeapRise
from protocol.messages.resources import WorkerResources
from protocol.names import Name

REBALANCES_KEPT = 100


class Coordinator(msgspec.Struct, frozen=True):
    """A manager: the one that owns a group."""

    id: str
    url: str


class CoordinatorResponse(Response, frozen=True, kw_only=True):
    """Who coordinates a group."""

    group: str
    coordinator: Coordinator


class CoordinatorQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose coordinator is asked for."""

    group: Name


class GroupListQuery(PageQuery, frozen=True, kw_only=True):
    """Which groups are asked for, in any case; a word that is no state matches none."""

    state: str | None = None
    protocol_type: str | None = None


class GroupSummary(msgspec.Struct, frozen=True):
    """One line of the list of groups; `members` and `tasks` are counts."""

    group: str
    state: str
    protocol_type: str | None
    generation_id: int
    members: int
    tasks: int


class GroupListResponse(Response, frozen=True, kw_only=True):
    """All groups, by name; `next` is what to ask `after` if there are more."""

    groups: tuple[GroupSummary, ...]
    next: str | None = None


class DescribedMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member as an admin sees it; times are milliseconds since 1970.

    `resources` is what it takes of its machine, as it told last; null if it has not. `heap_rise` says that
    its heap grows and with which of its tasks that may be.
    """

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    metadata: msgspec.Raw = msgspec.field(default_factory=null)
    assignment: msgspec.Raw = msgspec.field(default_factory=null)
    session_timeout_ms: int
    last_heartbeat_ms: int
    draining: bool = False
    resources: WorkerResources | None = None
    heap_rise: HeapRise | None = None


class DescribeGroupResponse(Response, frozen=True, kw_only=True):
    """One group in full."""

    group: str
    state: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader_id: str | None
    members: tuple[DescribedMember, ...]
    tasks: int
    tasks_revision: int


class RebalanceRequest(Request, frozen=True, kw_only=True):
    """Ask for a rebalance."""

    reason: Text | None = None


class RebalancesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """How many rebalances are asked for."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=REBALANCES_KEPT)] = REBALANCES_KEPT


class Rebalance(msgspec.Struct, frozen=True):
    """One completed rebalance; `moved` counts tasks that changed hands."""

    generation_id: int
    reason: str
    started_at_ms: int
    duration_ms: int
    members: int
    moved: int


class GroupHistoryLine(msgspec.Struct, frozen=True):
    """One thing that happened to a group, in the generation it had then."""

    at_ms: int
    generation_id: int
    event: str


class RebalanceListResponse(Response, frozen=True, kw_only=True):
    """The group's history, newest first; `history` is what led to it, since the manager took the group up."""

    rebalances: tuple[Rebalance, ...]
    history: tuple[GroupHistoryLine, ...] = ()
