"""The one description of each operation of the API: routes, forwarding, permissions and OpenAPI follow it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from manager.http.front.parameters import GROUP, parameters_of, read_parameters
from manager.http.front.reading import body_at_hand, check_keys, check_names, decode_body, read_body
from manager.http.front.replying import JSON, reply
from protocol.errors import ErrorCode, Failure, RefusedError
from protocol.messages.base import Response
from protocol.roles import Role

if TYPE_CHECKING:
    from aiohttp import web

    from manager.core.member import Connection
    from manager.core.turn import Outcome
    from manager.http.front.reading import HttpRequest
    from manager.runtime.loop_share import LoopShare

Body_co = TypeVar("Body_co", covariant=True)
Asked_co = TypeVar("Asked_co", covariant=True)

OK, CREATED, ACCEPTED = HTTPStatus.OK.value, HTTPStatus.CREATED.value, HTTPStatus.ACCEPTED.value
NOT_MODIFIED = HTTPStatus.NOT_MODIFIED.value
TOO_MUCH = "more requests wait than the manager can keep; try again"


class Call(NamedTuple, Generic[Body_co, Asked_co]):
    """A request as its handler gets it: the names in its path are legal, the rest of it is read."""

    request: HttpRequest
    body: Body_co
    asked: Asked_co

    @property
    def group(self) -> str:
        """The group of the path."""
        return self.request.match_info["group"]

    @property
    def task(self) -> str:
        """The task of the path."""
        return self.request.match_info["task"]

    @property
    def member(self) -> str:
        """The member of the path."""
        return self.request.match_info["member_id"]

    @property
    def connection(self) -> Connection:
        """What the request came over."""
        return self.request.link


Plain = Call[None, None]
CallHandler = Callable[[Call[Any, Any]], Awaitable["Outcome | web.StreamResponse"]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One operation: what it is called, who may ask for it, what it takes, and what it may answer.

    Attributes:
        method: of HTTP; GET answers HEAD, too.
        path: as docs/protocol.md has it, `/v1/groups/{group}`.
        operation: its name, unique, for clients that are generated and for logs.
        summary: one line for people.
        handler: gives an outcome, which is sent with the first of `success`, or a response of its own.
        role: who may ask (a higher role may, too); None for anybody, even without a token.
        workers_too: whether a worker may ask although `role` is not WORKER.
        any_group: whether a token for some groups will do although no group is named: the answer tells of
            none, or only of those.
        counted: whether it counts to what one client may ask for, and waits its turn; a supervisor is always
            answered, or it would end a manager for having much to do.
        urgent: whether it goes before others that came in earlier, as a heartbeat has to.
        body: the type of the body; `body_optional` if `{}` is understood when there is none.
        asks: the type of what it takes from the query string and headers (`manager.http.front.parameters`).
        response: the type of the answer; None when it is not JSON.
        media: what the answer may come as, the usual form first.
        success: the statuses of success.
        sends: headers that every success has beside the usual ones.
        errors: the codes that the rules behind it may answer; `possible_errors` has all.
        held_s: how many seconds its answer may be held for, beyond the time that the work takes.
        error_fields: what each error of it carries beside the code, unless the error knows better.
    """

    method: str
    path: str
    operation: str
    summary: str
    handler: CallHandler
    role: Role | None = field(kw_only=True)
    workers_too: bool = field(default=False, kw_only=True)
    any_group: bool = field(default=False, kw_only=True)
    counted: bool = field(default=True, kw_only=True)
    urgent: bool = field(default=False, kw_only=True)
    body: type[msgspec.Struct] | None = field(default=None, kw_only=True)
    body_optional: bool = field(default=False, kw_only=True)
    asks: type[msgspec.Struct] | None = field(default=None, kw_only=True)
    response: type[msgspec.Struct] | None = field(default=Response, kw_only=True)
    media: tuple[str, ...] = field(default=(JSON,), kw_only=True)
    success: tuple[int, ...] = field(default=(OK,), kw_only=True)
    sends: tuple[str, ...] = field(default=(), kw_only=True)
    errors: tuple[ErrorCode, ...] = field(default=(), kw_only=True)
    held_s: float = field(default=0.0, kw_only=True)
    error_fields: Mapping[str, object] = field(default_factory=dict, kw_only=True)

    @property
    def is_forwarded(self) -> bool:
        """Whether a manager that has not the group asks the one that has; members are sent there instead."""
        return "{group}" in self.path and self.role is not Role.WORKER

    @property
    def is_by_people(self) -> bool:
        """Whether people write the body, or what makes it: a key that it has twice is a mistake then."""
        return self.role is not Role.WORKER

    @property
    def roles(self) -> frozenset[Role]:
        """Each of these is enough, as is any above; none are needed if there are none."""
        needed = {self.role} if self.role is not None else set()
        return frozenset(needed | ({Role.WORKER} if self.workers_too else set()))

    @property
    def possible_errors(self) -> tuple[ErrorCode, ...]:
        """Every code it may answer, in the order of protocol §2."""
        codes = {*self.errors, *_errors_of_shape(self)}
        return tuple(code for code in ErrorCode if code in codes)

    async def serve(self, request: HttpRequest) -> web.StreamResponse:
        """Take the request apart, in the order that protocol §2 asks for, and answer it.

        Raises:
            RefusedError: it is wrong; said with `error_fields`.
        """
        try:
            if self.counted and not request.share.admits(urgent=self.urgent):
                await self._wait_in_line(request.share)
            check_names(request)
            asked = read_parameters(request, self.asks) if self.asks is not None else None
            body = None
            if self.body is not None:
                raw = body_at_hand(request) or await read_body(request)
                body = self._decoded(self.body, raw)
                if self.is_by_people and raw:
                    await check_keys(raw)
            outcome = await self.handler(Call(request, body, asked))
        except RefusedError as error:
            error.failure = self.with_error_fields(error.failure)
            raise
        if isinstance(outcome, msgspec.Struct):
            return reply(
                self.with_error_fields(outcome) if isinstance(outcome, Failure) else outcome, self.success[0]
            )
        return outcome

    async def _wait_in_line(self, share: LoopShare) -> None:
        if share.is_full(urgent=self.urgent):
            raise RefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE, TOO_MUCH)
        await share.wait(urgent=self.urgent)

    def _decoded(self, kind: type[msgspec.Struct], raw: bytes) -> Any:
        return decode_body(raw or b"{}" if self.body_optional else raw, kind)

    def with_error_fields(self, failure: Failure) -> Failure:
        """The failure with what each error of this operation carries."""
        if not self.error_fields:
            return failure
        return msgspec.structs.replace(failure, fields={**self.error_fields, **failure.fields})


def _errors_of_shape(endpoint: Endpoint) -> set[ErrorCode]:
    """What may be wrong with any request of that shape, or with the manager."""
    codes = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR}
    if endpoint.role is not None:
        codes |= {ErrorCode.UNAUTHENTICATED, ErrorCode.GROUP_AUTHORIZATION_FAILED}
    if endpoint.counted:
        codes.add(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    if "{group}" in endpoint.path:
        codes |= {
            ErrorCode.INVALID_GROUP_ID,
            ErrorCode.NOT_COORDINATOR,
            ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        }
    if endpoint.asks is not None and any(each.name == GROUP for each in parameters_of(endpoint.asks)):
        codes.add(ErrorCode.INVALID_GROUP_ID)
    if endpoint.asks is not None or "{task}" in endpoint.path or "{transfer}" in endpoint.path:
        codes.add(ErrorCode.INVALID_REQUEST)
    if endpoint.body is not None:
        codes |= {ErrorCode.INVALID_REQUEST, ErrorCode.PAYLOAD_TOO_LARGE}
    return codes
