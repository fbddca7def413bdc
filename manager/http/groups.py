"""Groups for admins."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from aiohttp import web

from manager.core.commands import (
    DeleteGroup,
    DescribeGroup,
    DrainMember,
    ListMoves,
    ListRebalances,
    RemoveMember,
    StartRebalance,
)
from manager.http.reading import body_of, count_of, group_of, host_of
from manager.http.replying import reply
from protocol.messages.groups import RebalanceRequest

if TYPE_CHECKING:
    from manager.runtime.runtime import Runtime

REBALANCES_SHOWN = 100

_rebalance_decoder = msgspec.json.Decoder(RebalanceRequest)


class GroupHandlers:
    """The admin endpoints of groups."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def routes(self) -> list[web.RouteDef]:
        """GET, POST and DELETE below /v1/groups/{group}."""
        group = "/v1/groups/{group:[^/]*}"
        return [
            web.get(group, self.describe),
            web.delete(group, self.delete),
            web.post(f"{group}/rebalance", self.rebalance),
            web.get(f"{group}/rebalances", self.rebalances),
            web.get(f"{group}/moves", self.moves),
            web.delete(f"{group}/members/{{member_id}}", self.remove_member),
            web.post(f"{group}/members/{{member_id}}/drain", self.drain),
            web.delete(f"{group}/members/{{member_id}}/drain", self.undrain),
        ]

    async def describe(self, request: web.Request) -> web.Response:
        """One group."""
        return reply(await self._runtime.ask(group_of(request), DescribeGroup()))

    async def delete(self, request: web.Request) -> web.Response:
        """Forget an Empty group."""
        return reply(await self._runtime.ask(group_of(request), DeleteGroup()))

    async def rebalance(self, request: web.Request) -> web.Response:
        """Start a rebalance; the body may be left out."""
        name = group_of(request)
        body = await body_of(request, _rebalance_decoder) if request.can_read_body else RebalanceRequest()
        return reply(await self._runtime.ask(name, StartRebalance(reason=body.reason)))

    async def rebalances(self, request: web.Request) -> web.Response:
        """The group's history."""
        name = group_of(request)
        limit = count_of(request, "limit", REBALANCES_SHOWN, REBALANCES_SHOWN)
        return reply(await self._runtime.ask(name, ListRebalances(limit=limit)))

    async def moves(self, request: web.Request) -> web.Response:
        """Which tasks changed hands lately."""
        return reply(await self._runtime.ask(group_of(request), ListMoves()))

    async def remove_member(self, request: web.Request) -> web.Response:
        """Fence a member."""
        command = RemoveMember(member_id=request.match_info["member_id"])
        return reply(await self._runtime.ask(group_of(request), command, host_of(request)))

    async def drain(self, request: web.Request) -> web.Response:
        """Move a worker's tasks away and keep new ones off it."""
        return await self._drain(request, draining=True)

    async def undrain(self, request: web.Request) -> web.Response:
        """Let a drained worker have tasks again."""
        return await self._drain(request, draining=False)

    async def _drain(self, request: web.Request, *, draining: bool) -> web.Response:
        command = DrainMember(member_id=request.match_info["member_id"], draining=draining)
        outcome = await self._runtime.ask(group_of(request), command, host_of(request))
        return reply(outcome, status=HTTPStatus.ACCEPTED)
