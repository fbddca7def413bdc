from __future__ import annotations

import asyncio

import pytest

from protocol.errors import ErrorCode, Failure
from protocol.messages.groups import Coordinator, CoordinatorResponse
from protocol.messages.membership import HeartbeatResponse
from tests.fakes.turns import settle
from worker.client.answers import read_answer, refused, unreachable
from worker.client.discovery import Discovery

LOST = Failure(ErrorCode.COORDINATOR_NOT_AVAILABLE, "gone")


class Managers:
    """Say who coordinates, when the test lets them."""

    def __init__(self) -> None:
        self.coordinator = "http://one"
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def get(
        self, url: str, _expected: type[CoordinatorResponse], _timeout_s: float
    ) -> CoordinatorResponse | Failure:
        self.asked.append(url)
        await self.may_answer.wait()
        return CoordinatorResponse(group="g", coordinator=Coordinator("m", self.coordinator))


async def test_all_who_ask_meanwhile_share_one_lookup() -> None:
    """A worker's requests lose the coordinator together."""
    managers = Managers()
    managers.may_answer.clear()
    discovery = Discovery(managers, ["http://any"], "g")
    asking = [asyncio.ensure_future(discovery.coordinator()) for _ in range(5)]
    await settle()
    managers.may_answer.set()
    assert await asyncio.gather(*asking) == ["http://one"] * 5
    assert managers.asked == ["http://any/v1/coordinator?group=g"]


async def test_late_trouble_of_a_former_coordinator_is_no_news() -> None:
    """The present one was found meanwhile and is not to be forgotten for it."""
    managers = Managers()
    discovery = Discovery(managers, ["http://any"], "g")
    await discovery.coordinator()
    discovery.learn("http://one", LOST)
    managers.coordinator = "http://two"
    assert await discovery.coordinator() == "http://two"
    discovery.learn("http://one", LOST)
    assert await discovery.coordinator() == "http://two"
    assert len(managers.asked) == 2


@pytest.mark.parametrize(
    ("status", "body", "is_lost"),
    [
        (302, b"", True),
        (404, b"<html>", True),
        (200, b"<html>", True),
        (502, b"<html>", True),
        (500, b'{"error": "UNKNOWN_SERVER_ERROR", "message": "a bug", "cause_id": "x"}', False),
        (409, b'{"error": "ILLEGAL_GENERATION", "message": "m"}', False),
    ],
)
async def test_a_coordinator_whose_address_no_manager_answers_at_is_looked_for_again(
    status: int, body: bytes, *, is_lost: bool
) -> None:
    """A proxy that has taken the address over would be asked for ever; a manager with a bug is still one."""
    managers = Managers()
    discovery = Discovery(managers, ["http://any"], "g")
    await discovery.coordinator()
    managers.coordinator = "http://two"
    failure = read_answer("http://one", status, body, HeartbeatResponse, "http://login/")
    assert isinstance(failure, Failure)
    discovery.learn("http://one", failure)
    assert await discovery.coordinator() == ("http://two" if is_lost else "http://one")


class OneAwake(Managers):
    """Only the second of them answers."""

    async def get(
        self, url: str, expected: type[CoordinatorResponse], timeout_s: float
    ) -> CoordinatorResponse | Failure:
        if not url.startswith("http://second"):
            await asyncio.Event().wait()
        return await super().get(url, expected, timeout_s)


async def test_a_frozen_manager_costs_no_time() -> None:
    """All are asked at once, and the first answer counts."""
    discovery = Discovery(OneAwake(), ["http://first", "http://second", "http://third"], "g")
    asking = asyncio.ensure_future(discovery.coordinator())
    await settle()
    assert asking.done()
    assert asking.result() == "http://one"


async def test_a_manager_that_does_not_know_is_not_believed() -> None:
    """One that answers COORDINATOR_NOT_AVAILABLE is passed over for one that knows."""

    class Half(Managers):
        async def get(
            self, url: str, expected: type[CoordinatorResponse], timeout_s: float
        ) -> CoordinatorResponse | Failure:
            return LOST if "first" in url else await super().get(url, expected, timeout_s)

    assert await Discovery(Half(), ["http://first", "http://second"], "g").coordinator() == "http://one"


@pytest.mark.parametrize(
    ("second", "alone"),
    [
        (refused("http://second: connection refused"), True),
        (unreachable("http://second gave no answer within 5 s"), False),
        (Failure(ErrorCode.UNAUTHENTICATED, "no token"), False),
    ],
)
async def test_a_worker_is_alone_when_every_manager_refuses_connections(
    second: Failure, *, alone: bool
) -> None:
    """One that gives no answer may be frozen, or behind a network that is away for a while."""

    class Gone(Managers):
        async def get(
            self, url: str, expected: type[CoordinatorResponse], timeout_s: float
        ) -> CoordinatorResponse | Failure:
            if self.may_answer.is_set():
                return second if "second" in url else refused("http://first: connection refused")
            self.may_answer.set()
            return await super().get(url, expected, timeout_s)

    managers = Gone()
    discovery = Discovery(managers, ["http://first", "http://second"], "g")
    waiting = asyncio.ensure_future(discovery.until_alone())
    assert isinstance(await discovery.coordinator(), Failure)
    await settle()
    assert (discovery.is_alone, waiting.done()) == (alone, alone)
    waiting.cancel()
    managers.may_answer.clear()
    assert await discovery.coordinator() == "http://one"
    assert not discovery.is_alone
