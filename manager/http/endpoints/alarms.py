"""Alarms over HTTP: what rings, by which rules, and what is not told (protocol §5, Alarms)."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Final, TypeVar

from manager.background.herd_alarms import etag_of_rules, rules_response
from manager.core.alarms.book import AlarmBook
from manager.core.alarms.checking import pattern_fault, problems_of
from manager.core.alarms.findings import MANAGER, MEMBER, TASK
from manager.core.alarms.group_place import GroupPlace
from manager.core.commands import AcknowledgeAlarms, ListAlarms
from manager.core.tasks.task_lists import refused_list
from manager.core.views.alarms import shown
from manager.core.written_places import read_place
from manager.http.authorization import caller_of
from manager.http.endpoint import CREATED, OK, Endpoint
from manager.http.front.replying import reply
from manager.storage.firing_alarms import FiringQuery, Place
from protocol.errors import ErrorCode, RefusedError
from protocol.etags import Conditions
from protocol.messages import alarms as messages
from protocol.messages.base import Response
from protocol.messages.tasks import Problem
from protocol.roles import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from aiohttp import web

    from manager.access.authorizer import Caller
    from manager.background.herd_alarms import HerdAlarms
    from manager.core.turn import Outcome
    from manager.http.endpoint import Call, Plain
    from manager.http.endpoints.alarm_receivers import ReceiverDirectory
    from manager.runtime.coordinator_runtime import CoordinatorRuntime
    from protocol.messages.alarms import Silence

    Change = Callable[[tuple[Silence, ...]], tuple[Silence, ...]]

AnyPlace = TypeVar("AnyPlace", Place, GroupPlace)
RULES: Final = "/v1/alarms/rules"
SILENCES: Final = "/v1/alarms/silences"
ACKNOWLEDGE: Final = "/v1/alarms/acknowledge"
OF_GROUP: Final = "/v1/groups/{group}/alarms"
UNSTORED: Final = {"Cache-Control": "no-cache"}


class AlarmHandlers:
    """Rules and silences are the herd's, alarms are of groups, but for those of managers and the database.

    A rule may tell those of `receivers`, which may change; anybody without them.
    """

    def __init__(
        self,
        runtime: CoordinatorRuntime,
        alarms: HerdAlarms | None,
        receivers: ReceiverDirectory | None = None,
    ) -> None:
        self._runtime = runtime
        self._alarms_of_herd = alarms
        self._receivers = receivers

    def endpoints(self) -> list[Endpoint]:
        """All below /v1/alarms, and the alarms of a group."""
        return [*self._of_herd(), *self._of_no_group(), *self._of_silences(), *self._of_groups()]

    def _of_herd(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                "/v1/alarms",
                "listAlarms",
                "What fires in all groups and of none, the worst and newest first",
                self.firing,
                role=Role.VIEWER,
                any_group=True,
                asks=messages.AlarmListQuery,
                response=messages.AlarmListResponse,
            ),
            Endpoint(
                "GET",
                RULES,
                "getAlarmRules",
                "All rules of alarms, in the order in which they count",
                self.rules,
                role=Role.VIEWER,
                response=messages.AlarmRulesResponse,
                sends=("ETag",),
            ),
            Endpoint(
                "PUT",
                RULES,
                "putAlarmRules",
                "Replace all rules of alarms, or only look whether they are in order",
                self.put_rules,
                role=Role.ADMIN,
                body=messages.PutAlarmRulesRequest,
                asks=Conditions,
                response=messages.AlarmRulesResponse,
                sends=("ETag",),
                errors=(ErrorCode.PRECONDITION_FAILED,),
            ),
        ]

    def _of_no_group(self) -> list[Endpoint]:
        return [
            Endpoint(
                "POST",
                ACKNOWLEDGE,
                "acknowledgeHerdAlarms",
                "Say that somebody has seen what fires of managers or the database",
                self.acknowledge_herd,
                role=Role.OPERATOR,
                body=messages.AcknowledgeHerdRequest,
                response=messages.AcknowledgeResponse,
            )
        ]

    def _of_silences(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                SILENCES,
                "listSilences",
                "Which alarms nobody is told of, until when and why",
                self.silences,
                role=Role.VIEWER,
                response=messages.SilenceListResponse,
            ),
            Endpoint(
                "POST",
                SILENCES,
                "createSilence",
                "Tell nobody of some alarms until a moment",
                self.silence,
                role=Role.OPERATOR,
                body=messages.SilenceRequest,
                response=messages.SilenceResponse,
                success=(CREATED,),
            ),
            Endpoint(
                "DELETE",
                f"{SILENCES}/{{silence}}",
                "deleteSilence",
                "End a silence; one that is over is no error",
                self.unsilence,
                role=Role.OPERATOR,
            ),
        ]

    def _of_groups(self) -> list[Endpoint]:
        return [
            Endpoint(
                "GET",
                OF_GROUP,
                "listGroupAlarms",
                "What fires and what is pending in a group, and what fired before",
                self.of_group,
                role=Role.VIEWER,
                asks=messages.GroupAlarmsQuery,
                response=messages.AlarmListResponse,
                errors=(ErrorCode.GROUP_ID_NOT_FOUND,),
            ),
            Endpoint(
                "POST",
                f"{OF_GROUP}/acknowledge",
                "acknowledgeAlarms",
                "Say that somebody has seen what fires: it is not told again before its end",
                self.acknowledge,
                role=Role.OPERATOR,
                body=messages.AcknowledgeRequest,
                response=messages.AcknowledgeResponse,
                errors=(ErrorCode.GROUP_ID_NOT_FOUND,),
            ),
        ]

    async def firing(self, call: Call[None, messages.AlarmListQuery]) -> Outcome:
        """As it is stored, whichever manager has the group; of the groups that the caller may know of.

        Who may know of some groups only sees nothing of managers and the database.
        """
        asked, wall_ms = call.asked, _now_ms()
        book = AlarmBook(silences=await self._alarms.silences())
        page = await self._alarms.firing(_query(asked, caller_of(call.request)))
        return messages.AlarmListResponse(
            alarms=tuple(shown(row, book, wall_ms) for row in page.rows),
            total=page.total,
            next=None if page.following is None else page.following.written(),
        )

    async def rules(self, _: Plain) -> web.Response:
        """All of them."""
        return _with_etag(rules_response(await self._alarms.rules()))

    async def put_rules(self, call: Call[messages.PutAlarmRulesRequest, Conditions]) -> web.Response:
        """All or none; equal ones change nothing."""
        present = await self._alarms.rules()
        _require(call.asked, etag_of_rules(present.version))
        _require(Conditions(if_match=call.body.if_match), etag_of_rules(present.version))
        rules = call.body.rules
        problems = tuple(
            Problem(path, message) for path, message in problems_of(rules, self._known_receivers)
        )
        if problems:
            raise refused_list(ErrorCode.INVALID_REQUEST, problems)
        if call.body.validate_only:
            return _with_etag(rules_response(present._replace(entries=rules)))
        if rules != present.entries and not await self._alarms.put_rules(rules, present.version):
            message = "If-Match: the rules have been changed meanwhile"
            raise RefusedError(ErrorCode.PRECONDITION_FAILED, message)
        return _with_etag(rules_response(await self._alarms.rules()))

    async def silences(self, _: Plain) -> Outcome:
        """Those that have not ended."""
        now_ms = _now_ms()
        kept = await self._alarms.silences()
        return messages.SilenceListResponse(silences=_present(kept, now_ms))

    async def silence(self, call: Call[messages.SilenceRequest, None]) -> Outcome:
        """One more; those that have ended are forgotten meanwhile."""
        body, now_ms = call.body, _now_ms()
        _require_end(body.ends_at_ms, now_ms)
        for field in ("rules", "groups", "tasks"):
            if fault := pattern_fault(getattr(body, field)):
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"{field}: {fault}")
        new = messages.Silence(
            id=uuid.uuid4().hex[:12],
            ends_at_ms=body.ends_at_ms,
            reason=body.reason,
            by=body.by,
            created_at_ms=now_ms,
            rules=body.rules,
            groups=body.groups,
            tasks=body.tasks,
        )
        await self._change_silences(lambda kept: _with(_present(kept, now_ms), new))
        return messages.SilenceResponse(silence=new)

    async def unsilence(self, call: Plain) -> Outcome:
        """One less."""
        ended, now_ms = call.request.match_info["silence"], _now_ms()
        await self._change_silences(
            lambda kept: tuple(each for each in _present(kept, now_ms) if each.id != ended)
        )
        return Response()

    async def _change_silences(self, change: Change) -> None:
        if not await self._alarms.change_silences(change):
            message = "others change the silences at the same time; try again"
            raise RefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE, message)

    async def of_group(self, call: Call[None, messages.GroupAlarmsQuery]) -> Outcome:
        """By the manager that has the group, which alone knows what is pending."""
        asked = call.asked
        after = _place(asked.after, GroupPlace)
        command = ListAlarms(past=asked.past, limit=asked.limit, after=after)
        return await self._runtime.ask(call.group, command)

    async def acknowledge(self, call: Call[messages.AcknowledgeRequest, None]) -> Outcome:
        """Of one task or worker, or all of a rule."""
        body = call.body
        if body.task is not None and body.member is not None:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "member: an alarm is of a task or of a member")
        subject = None if body.task is None else TASK + body.task
        if body.member is not None:
            subject = MEMBER + body.member
        command = AcknowledgeAlarms(rule=body.rule, by=body.by, subject=subject)
        return await self._runtime.ask(call.group, command)

    async def acknowledge_herd(self, call: Call[messages.AcknowledgeHerdRequest, None]) -> Outcome:
        """In the database, which whoever looks goes by."""
        body = call.body
        subject = None if body.manager is None else MANAGER + body.manager
        count = await self._alarms.acknowledge(body.rule, subject, body.by, _now_ms())
        return messages.AcknowledgeResponse(acknowledged=count)

    @property
    def _known_receivers(self) -> Collection[str] | None:
        return None if self._receivers is None else self._receivers.names

    @property
    def _alarms(self) -> HerdAlarms:
        if self._alarms_of_herd is None:
            raise RefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "this manager keeps no rules of alarms")
        return self._alarms_of_herd


def _query(asked: messages.AlarmListQuery, caller: Caller) -> FiringQuery:
    after = _place(asked.after, Place)
    return FiringQuery(
        limit=asked.limit,
        may_know=caller.groups,
        group=asked.group,
        rule=asked.rule,
        severity=asked.severity,
        after=after,
    )


def _place(text: str | None, kind: type[AnyPlace]) -> AnyPlace | None:
    place = None if text is None else read_place(text, kind)
    if place is None and text is not None:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "after: is not the next of a page of alarms")
    return place


def _require(conditions: Conditions, etag: str) -> None:
    if conditions.is_other(etag):
        message = "If-Match: the rules have been changed since"
        raise RefusedError(ErrorCode.PRECONDITION_FAILED, message, etag=etag)
    if conditions.is_same(etag):
        message = "If-None-Match: there are such rules already"
        raise RefusedError(ErrorCode.PRECONDITION_FAILED, message, etag=etag)


def _require_end(ends_at_ms: int, now_ms: int) -> None:
    if ends_at_ms <= now_ms:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "ends_at_ms: is over already")
    if ends_at_ms - now_ms > messages.LONGEST_SILENCE_MS:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "ends_at_ms: is more than ten years away")


def _present(kept: Sequence[Silence], now_ms: int) -> tuple[Silence, ...]:
    return tuple(each for each in kept if each.ends_at_ms > now_ms)


def _with(kept: tuple[Silence, ...], new: Silence) -> tuple[Silence, ...]:
    if len(kept) >= messages.MOST_SILENCES:
        message = f"there are {len(kept)} silences already, and there may be {messages.MOST_SILENCES} at most"
        raise RefusedError(ErrorCode.INVALID_REQUEST, message)
    return (*kept, new)


def _with_etag(response: messages.AlarmRulesResponse) -> web.Response:
    return reply(response, OK, {"ETag": response.etag, **UNSTORED})


def _now_ms() -> int:
    return int(time.time() * 1000)
