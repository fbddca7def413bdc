"""The audit log, for those who look into it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from manager.http.endpoint import Endpoint
from protocol.messages.audit import AuditListQuery, AuditListResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call
    from protocol.messages.audit import AuditEntry


class AuditReader(Protocol):
    """Where the entries of all managers are."""

    async def read(self, asked: AuditListQuery, /) -> tuple[AuditEntry, ...]:
        """Those that are asked for, and one more if there are more; raises `StorageError`."""
        ...


class NothingKept:
    """Of a manager that writes nothing down."""

    async def read(self, _: AuditListQuery) -> tuple[AuditEntry, ...]:
        """Nothing."""
        return ()


class AuditHandlers:
    """GET /v1/audit."""

    def __init__(self, entries: AuditReader) -> None:
        self._entries = entries

    def endpoints(self) -> list[Endpoint]:
        """The one path of the audit log."""
        return [
            Endpoint(
                "GET",
                "/v1/audit",
                "listAudit",
                "What admins and operators did, and tried, in the order in which it was stored",
                self.entries,
                role=Role.ADMIN,
                asks=AuditListQuery,
                response=AuditListResponse,
            )
        ]

    async def entries(self, call: Call[None, AuditListQuery]) -> Outcome:
        """A page of them."""
        found = await self._entries.read(call.asked)
        page = found[: call.asked.limit]
        return AuditListResponse(entries=page, next=page[-1].id if len(found) > len(page) else None)
