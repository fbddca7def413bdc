"""Assignors as members announce them on joining (protocol §5, Admin endpoints)."""

from __future__ import annotations

import msgspec

from protocol.messages.base import PageQuery, Response
from protocol.names import Name


class AssignorListQuery(PageQuery, frozen=True, kw_only=True):
    """Of which group; of all when it is left out."""

    group: Name | None = None


class AnnouncedAssignor(msgspec.Struct, frozen=True, kw_only=True):
    """An assignor that `members` of a group announce; a candidate is announced by all.

    Which candidate is chosen, the members vote when they join; `is_chosen` tells of the last vote.
    """

    assignor: str
    members: int
    is_candidate: bool
    is_chosen: bool


class GroupAssignors(msgspec.Struct, frozen=True, kw_only=True):
    """What the members of one group announce, the most announced first; nothing when there are none."""

    group: str
    protocol_type: str | None
    members: int
    assignors: tuple[AnnouncedAssignor, ...]


class AssignorListResponse(Response, frozen=True, kw_only=True):
    """Every group that has members, by name; `next` as in all lists."""

    groups: tuple[GroupAssignors, ...]
    next: str | None = None
