"""More of the tasks to be placed, for a leader that asks for them in pages (protocol §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.core import checks, sessions
from manager.core.tasks import offers
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.membership import OfferResponse
from protocol.states import GroupState
from protocol.worker_metadata import PROTOCOL_TYPE

if TYPE_CHECKING:
    from manager.core.member import Parked
    from manager.core.turn import Turn
    from protocol.messages.membership import OfferRequest


def offer(turn: Turn, request: OfferRequest, parked: Parked) -> None:
    """Answer with the next page, as the tasks are now."""
    group = turn.group
    member = checks.member(group, request.member_id, request.instance_id)
    checks.generation(group, request.generation_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        raise checks.rebalancing(group)
    is_told = group.is_leader(member) and group.protocol_type == PROTOCOL_TYPE
    if group.state is not GroupState.AWAITING_SYNC or not is_told:
        raise RefusedError(
            ErrorCode.INVALID_REQUEST, "only the leader of a herd is told of tasks, before its sync"
        )
    sessions.request_accepted(turn, member, parked)
    page = offers.following(group, request.after)
    turn.answer(parked, OfferResponse(tasks=page.tasks, more=page.more))
