"""What is asked of a group about transfers, by admins and by the driver (protocol §5, Transfers)."""

from __future__ import annotations

from collections.abc import Mapping

from manager.core.stored_rows import TransferRow
from protocol.messages.base import Request, Response


class StartTransfer(Request, frozen=True, kw_only=True):
    """Begin to give tasks to another group; asking again for one that is known changes nothing.

    Args:
        transfer: its id, which no other has.
        to_group: where they go.
        tasks: each with its name there.
        by: who asks.
        validate_only: see whether it could begin, and do nothing.
    """

    transfer: str
    to_group: str
    tasks: Mapping[str, str]
    by: str | None = None
    validate_only: bool = False


class CancelTransfer(Request, frozen=True, kw_only=True):
    """Have the tasks stay, as long as none of them is given; asking again changes nothing."""

    transfer: str
    cause: str


class AdvanceTransfer(Request, frozen=True, kw_only=True):
    """Do what follows from what the other group has stored: `peers` are all its rows of the transfer."""

    transfer: str
    peers: tuple[TransferRow, ...]


class TransferRows(Response, frozen=True, kw_only=True):
    """The rows of a transfer as the group has them now."""

    rows: tuple[TransferRow, ...]
