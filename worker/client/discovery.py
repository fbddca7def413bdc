"""Which manager coordinates the group: asked of any, remembered until there is trouble (protocol §3)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import msgspec
import structlog

from protocol.errors import ErrorCode, Failure
from protocol.messages.groups import Coordinator, CoordinatorResponse
from worker.client.answers import is_refused, unreachable
from worker.waiting import ChangeSignal

if TYPE_CHECKING:
    from collections.abc import Sequence

log = structlog.get_logger(__name__)

TIMEOUT_S = 5.0
_LOST = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class Getter(Protocol):
    """The part of a transport that this needs."""

    async def get(
        self, url: str, expected: type[CoordinatorResponse], timeout_s: float
    ) -> CoordinatorResponse | Failure:
        """The answer to a GET."""
        ...


class Discovery:
    """The present coordinator of one group."""

    def __init__(self, transport: Getter, managers: Sequence[str], group: str) -> None:
        self._transport = transport
        self._managers = [manager.rstrip("/") for manager in managers]
        self._path = f"/v1/coordinator?group={quote(group, safe='')}"
        self._known: str | None = None
        self._searching = asyncio.Lock()
        self._is_lost = False
        self.is_alone = False
        self._changed = ChangeSignal()

    async def until_alone(self) -> None:
        """Wait for `is_alone`: by the latest search, every manager refuses connections."""
        await self._changed.until(lambda: self.is_alone)

    async def coordinator(self) -> str | Failure:
        """Its URL, no slash at the end; looked up if it is not known, once for all who ask meanwhile."""
        async with self._searching:
            if self._known is None:
                found = await self._search()
                self._tell(found)
                if isinstance(found, Failure):
                    return found
                self._known = found
            return self._known

    def learn(self, asked: str, failure: Failure) -> None:
        """Take in how a request to `asked` failed; a manager that is not the coordinator may name who is.

        Whoever does not answer as a manager does, with a redirect for one, is no coordinator (any more).
        """
        if asked != self._known or not (failure.code in _LOST or _is_of_no_manager(failure)):
            return
        self._known = _named(failure)
        log.info("coordinator lost", coordinator=asked, why=failure.message, moved_to=self._known)

    async def _search(self) -> str | Failure:
        """Ask all managers at once, and believe the first that answers: one that is frozen costs no time."""
        asking = {asyncio.ensure_future(self._ask(manager)) for manager in self._managers}
        failures: list[Failure] = []
        try:
            for asked in asyncio.as_completed(asking):
                answer = await asked
                if isinstance(answer, CoordinatorResponse):
                    return answer.coordinator.url.rstrip("/")
                failures.append(answer)
        finally:
            for one in asking:
                one.cancel()
            self.is_alone = len(failures) == len(asking) and all(map(is_refused, failures))
            self._changed.notify()
        return _summary(failures)

    async def _ask(self, manager: str) -> CoordinatorResponse | Failure:
        return await self._transport.get(manager + self._path, CoordinatorResponse, TIMEOUT_S)

    def _tell(self, found: str | Failure) -> None:
        """Say once that nobody answers, and once that somebody does again."""
        if isinstance(found, Failure) and not self._is_lost:
            log.warning("no coordinator", code=found.code.name, why=found.message)
        elif isinstance(found, str):
            log.info("coordinator found", coordinator=found)
        self._is_lost = isinstance(found, Failure)


def _is_of_no_manager(failure: Failure) -> bool:
    """Whether something else answers there: a manager that has met a bug of its own names it."""
    return failure.code is ErrorCode.UNKNOWN_SERVER_ERROR and "cause_id" not in failure.fields


def _named(failure: Failure) -> str | None:
    """The URL in the field `coordinator` of NOT_COORDINATOR, if it has one."""
    try:
        return msgspec.convert(failure.fields.get("coordinator"), Coordinator).url.rstrip("/")
    except msgspec.ValidationError:
        return None


def _summary(failures: Sequence[Failure]) -> Failure:
    """One failure for all: a refusal that a person must act on, else that nobody could be reached."""
    for failure in failures:
        if not failure.code.retriable and failure.code is not ErrorCode.UNKNOWN_SERVER_ERROR:
            return failure
    return unreachable("no manager answers: " + "; ".join(failure.message for failure in failures))
