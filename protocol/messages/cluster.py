"""The managers of a cluster, and what each has (protocol §5, Admin endpoints)."""

from __future__ import annotations

import msgspec

from protocol.messages.base import Response


class ManagerSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A manager: how many slots it has, and how long its lease still lasts; null for one without end."""

    id: str
    url: str
    alive: bool
    slots: int
    lease_left_ms: int | None = None
    started_at_ms: int = 0


class SlotSummary(msgspec.Struct, frozen=True):
    """A slot: the id of the manager that has it, if one has, and how often it has changed hands."""

    slot: int
    epoch: int
    manager: str | None


class ManagerListResponse(Response, frozen=True, kw_only=True):
    """All managers by id, all slots by number."""

    managers: tuple[ManagerSummary, ...]
    slots: tuple[SlotSummary, ...] = ()
