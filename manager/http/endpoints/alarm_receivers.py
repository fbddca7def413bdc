"""Who is told of alarms, for those who look whether that works (docs/alarm-receivers.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from manager.http.endpoint import Endpoint
from protocol.errors import ErrorCode, Failure
from protocol.messages.alarm_receivers import AlarmReceiverListResponse, ReceiverTestResponse
from protocol.roles import Role

if TYPE_CHECKING:
    from manager.core.turn import Outcome
    from manager.http.endpoint import Plain

TEST_S = 60.0
"""How long a server of mail may take."""


class ReceiverDirectory(Protocol):
    """The receivers that the manager was told of."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of all of them."""
        ...

    async def listed(self) -> AlarmReceiverListResponse:
        """All of them, and how each is; raises `StorageError`."""
        ...

    async def test(self, name: str, /) -> ReceiverTestResponse | None:
        """Send one a test message; None if there is no such receiver."""
        ...


class NobodyTold:
    """Of a manager without receivers."""

    names: tuple[str, ...] = ()

    async def listed(self) -> AlarmReceiverListResponse:
        """Nobody."""
        return AlarmReceiverListResponse(receivers=())

    async def test(self, _: str) -> ReceiverTestResponse | None:
        """There is none."""
        return None


class AlarmReceiverHandlers:
    """GET /v1/alarms/receivers, and a test of each."""

    def __init__(self, receivers: ReceiverDirectory) -> None:
        self._receivers = receivers

    def endpoints(self) -> list[Endpoint]:
        """Two paths."""
        return [
            Endpoint(
                "GET",
                "/v1/alarms/receivers",
                "listAlarmReceivers",
                "Who is told of alarms, and whether that works",
                self.listed,
                role=Role.VIEWER,
                response=AlarmReceiverListResponse,
            ),
            Endpoint(
                "POST",
                "/v1/alarms/receivers/{receiver}/test",
                "testAlarmReceiver",
                "Send a receiver a test message, and tell whether it was taken",
                self.test,
                role=Role.OPERATOR,
                response=ReceiverTestResponse,
                errors=(ErrorCode.NOT_FOUND,),
                held_s=TEST_S,
            ),
        ]

    async def listed(self, _: Plain) -> Outcome:
        """All of them."""
        return await self._receivers.listed()

    async def test(self, call: Plain) -> Outcome:
        """Whether the message was taken."""
        name = call.request.match_info["receiver"]
        tested = await self._receivers.test(name)
        if tested is not None:
            return tested
        known = ", ".join(self._receivers.names) or "none"
        return Failure(ErrorCode.NOT_FOUND, f"receiver: there is none of that name; there are {known}")
