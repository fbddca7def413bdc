"""Members of groups, as what asks a manager's runtime and as what is stored of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core.stored_rows import MemberRow
from protocol.errors import Failure
from protocol.messages.base import encode_opaque
from protocol.messages.membership import HeartbeatRequest, JoinRequest, Protocol, SyncRequest

if TYPE_CHECKING:
    from manager.runtime.coordinator_runtime import CoordinatorRuntime


def join(member_id: str = "", **fields: Any) -> JoinRequest:
    """Of a member that no busy machine lets lapse."""
    told: dict[str, Any] = {
        "session_timeout_ms": 1_000_000,
        "rebalance_timeout_ms": 60_000,
        "protocol_type": "test",
        "protocols": (Protocol("range", encode_opaque({})),),
        "require_member_id": False,
    }
    return JoinRequest(member_id=member_id, **(told | fields))


async def stable(runtime: CoordinatorRuntime, group: str = "g") -> HeartbeatRequest:
    """Bring the group to Stable; returns its one member's heartbeat."""
    joined: Any = await runtime.ask(group, join())
    sync = SyncRequest(member_id=joined.member_id, generation_id=joined.generation_id)
    assert error(await runtime.ask(group, sync)) == "NONE"
    return HeartbeatRequest(member_id=joined.member_id, generation_id=joined.generation_id)


def error(outcome: Any) -> str:
    """The name of its code."""
    return outcome.code.name if isinstance(outcome, Failure) else str(outcome.error)


def member_row(name: str, *assignors: str, draining: bool = False) -> MemberRow:
    """What is stored of a member of the group `g` that announces these assignors."""
    return MemberRow(
        group="g",
        member_id=name,
        position=0,
        instance_id=None,
        client_id=name,
        host="h",
        session_timeout_ms=600_000,
        rebalance_timeout_ms=600_000,
        protocols=tuple(Protocol(assignor, encode_opaque({"owned": {}})) for assignor in assignors),
        draining=draining,
    )
