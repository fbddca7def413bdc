"""Transfers: tasks that go from one group to another, as admin clients see them (protocol §5, Transfers)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from protocol.messages.base import Request, Response
from protocol.names import Name
from protocol.states import TransferStep

MOST_TASKS: Final = 50
"""Of one transfer: all of them change hands in one turn of either group, 35 ms of it beside 100,000 tasks."""

TransferTasks = Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=MOST_TASKS)]


class StartTransferRequest(Request, frozen=True, kw_only=True):
    """Have `tasks` of group `from` go on in group `to`, all or none, under their names or those of `rename`.

    `id` makes asking again harmless: a transfer that is known under it is answered as it stands. With
    `validate_only` everything is checked and nothing done. With `allow_unplaced` the other group need have no
    worker that could run them.
    """

    source: Name = msgspec.field(name="from")
    target: Name = msgspec.field(name="to")
    tasks: TransferTasks
    rename: dict[Name, Name] = msgspec.field(default_factory=dict)
    allow_unplaced: bool = False
    validate_only: bool = False
    id: Name | None = None


class TransferListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which transfers are asked for: those that `group` gives or gets; those that are `active`, or over."""

    group: Name | None = None
    state: Literal["active", "over"] | None = None


class TransferredTask(msgspec.Struct, frozen=True, kw_only=True):
    """One task of a transfer: its name in either group, and how far it has come."""

    task: str
    to_task: str
    step: TransferStep


class Transfer(msgspec.Struct, frozen=True, kw_only=True):
    """A transfer as a whole; `id` is null of one that was only checked.

    `step` is that of the task that is least far; `cause` says why it was cancelled. Times are in milliseconds
    since 1970.
    """

    id: str | None
    source: str = msgspec.field(name="from")
    target: str = msgspec.field(name="to")
    step: TransferStep
    started_at_ms: int
    changed_at_ms: int
    by: str | None
    cause: str | None
    tasks: tuple[TransferredTask, ...]


class TransferResponse(Transfer, frozen=True, kw_only=True):
    """`Transfer` as a response of its own."""

    error: str = "NONE"


class TransferListResponse(Response, frozen=True, kw_only=True):
    """Transfers, the newest first."""

    transfers: tuple[Transfer, ...]
