"""Alarms on their way from the log to receivers that are well, down, or away (SQLite and PostgreSQL)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from manager.outbox.receivers import health
from manager.outbox.receivers.subscriber import PREFIX
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import EventType
from tests.fakes.smtp_server import HANG as HANGS
from tests.fakes.smtp_server import SmtpServerDouble
from tests.integration.manager.alarm_herd import Herd, Rota, hurry, until
from tests.integration.manager.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.manager.backends import Database


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    hurry(monkeypatch)


@pytest.fixture
async def herd(database: Database, tmp_path: Path) -> AsyncIterator[Herd]:
    made = Herd(database.url, tmp_path)
    async with made.open():
        yield made


@pytest.fixture
async def hook() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def other() -> AsyncIterator[Receiver]:
    opened = Receiver()
    await opened.open()
    yield opened
    await opened.close()


def webhook(to: Receiver, **more: Any) -> dict[str, Any]:
    return {"kind": "webhook", "url": to.url, **more}


def rules(of: Receiver) -> list[str]:
    return [got.event["alarm"]["rule"] for got in of.got]


async def test_a_receiver_is_told_the_alarms_that_name_it_and_nothing_else(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """In order, from the first start that knows it."""
    herd.declare(ops=webhook(hook), dev=webhook(other))
    await herd.alarm("ops", rule="before")
    async with herd.manager():
        await herd.alarm("ops", rule="a")
        await herd.alarm("dev", rule="b")
        await herd.alarm("ops", "dev", rule="c")
        await herd.alarm("nobody", rule="d")
        await herd.alarm("ops", rule="e")
        await hook.until(lambda: len(hook.got) == 3)
        await other.until(lambda: len(other.got) == 2)
    assert (rules(hook), rules(other)) == (["a", "c", "e"], ["b", "c"])
    assert (herd.counted("ops", "taken"), herd.counted("ops", "refused")) == (3, 0)


async def test_a_receiver_that_is_down_misses_nothing_and_delays_no_other(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """All come in order when it is up again; the other one has had them long before."""
    herd.declare(ops=webhook(hook), dev=webhook(other))
    port = int(hook.url.split(":")[2].split("/")[0])
    async with herd.manager():
        await hook.close()
        for rule in "abcde":
            await herd.alarm("ops", "dev", rule=rule)
        await other.until(lambda: len(other.got) == 5)
        assert hook.got == []
        await hook.open(port)
        await hook.until(lambda: len(hook.got) == 5)
    assert rules(hook) == rules(other) == list("abcde")


async def test_another_manager_goes_on_where_the_first_was_killed(herd: Herd, hook: Receiver) -> None:
    """At most the one under way comes twice, here while the first one waits for its answer."""
    herd.declare(ops=webhook(hook))
    first, second = Rota(), Rota(on=False)
    async with herd.manager(second):
        async with herd.manager(first):
            await herd.alarm("ops", rule="a")
            await hook.until(lambda: rules(hook) == ["a"])
            await until(lambda: _is_at(herd, 2))
            hook.answers = deque([0])
            await herd.alarm("ops", rule="b")
            await hook.until(lambda: rules(hook) == ["a", "b"])
        second.on = True
        await herd.alarm("ops", rule="c")
        await hook.until(lambda: rules(hook)[-1] == "c")
    assert rules(hook) == ["a", "b", "b", "c"]


async def _is_at(herd: Herd, position: int) -> bool:
    return await herd.storage.events.position(f"{PREFIX}ops") >= position


async def test_one_that_is_away_is_an_alarm_to_the_fallbacks_told_once_by_all_managers(
    herd: Herd, hook: Receiver, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its coming back is, too, whichever manager sees it."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 50)
    herd.declare(ops=webhook(hook), dev=webhook(other, fallback=True))
    hook.always = 503
    async with herd.manager():
        await herd.alarm("ops", rule="a")
        await other.until(lambda: bool(other.got))
        assert herd.away("ops") == 1
    before = len(hook.got)
    async with herd.manager():
        await hook.until(lambda: len(hook.got) > before + 3)
        hook.always = 204
        await other.until(lambda: other.got[-1].event["type"] == "alarm.resolved")
    told = await herd.alarms_about_receivers()
    assert [(event.type, event.alarm and event.alarm.receivers) for event in told] == [
        (EventType.ALARM_FIRING, ("dev",)),
        (EventType.ALARM_RESOLVED, ("dev",)),
    ]
    assert told[0].alarm is not None
    assert told[0].alarm.subjects[0].causes == ("HTTP 503",)
    back = await herd.health("ops")
    assert (back.state, back.last_error) == (ReceiverState.DELIVERING, "HTTP 503")


async def test_how_long_it_has_failed_is_known_to_the_manager_that_goes_on(
    herd: Herd, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The five minutes do not begin anew with each manager."""
    herd.declare(ops=webhook(hook))
    hook.always = 500
    async with herd.manager():
        await herd.alarm("ops")
        await until(lambda: _is(herd, ReceiverState.FAILING))
    failing = await herd.health("ops")
    assert failing.since_ms is not None
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 0)
    async with herd.manager():
        await until(lambda: _is(herd, ReceiverState.AWAY))
    assert (await herd.health("ops")).since_ms == failing.since_ms
    assert len(await herd.alarms_about_receivers()) == 1


async def _is(herd: Herd, state: ReceiverState) -> bool:
    return (await herd.health("ops")).state is state


async def test_what_a_chat_never_takes_is_given_up_and_the_next_one_comes(herd: Herd, hook: Receiver) -> None:
    """After three tries, and it is counted."""
    herd.declare(ops={"kind": "slack", "url": hook.url})
    hook.answers = deque([400, 500, 400, 400, 400])
    async with herd.manager():
        await herd.alarm("ops", rule="bad")
        await herd.alarm("ops", rule="good")
        await hook.until(lambda: len(hook.got) == 6)
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
    assert ["bad" in got.body.decode() for got in hook.got] == [True] * 5 + [False]
    assert (herd.counted("ops", "given_up"), herd.counted("ops", "refused")) == (1, 5)


async def test_a_mail_server_that_hangs_delays_no_chat(herd: Herd, hook: Receiver) -> None:
    """And is left at once when the manager stops."""
    server = SmtpServerDouble(always={"EHLO": HANGS})
    await server.open()
    herd.declare(server, ops={"kind": "email", "to": ["a@example.com"]}, chat=webhook(hook))
    async with herd.manager():
        await herd.alarm("ops", "chat")
        await server.until(lambda: len(server.said) > 1)
        await herd.alarm("ops", "chat")
        await hook.until(lambda: len(hook.got) == 2)
    await server.close()


async def test_the_file_is_read_again_and_a_bad_one_changes_nothing(
    herd: Herd, hook: Receiver, other: Receiver
) -> None:
    """A receiver that stays goes on where it was; one that is new begins with what comes."""
    herd.declare(ops=webhook(hook))
    names = []
    async with herd.manager() as receivers:
        await herd.alarm("ops", "dev", rule="a")
        await until(lambda: _is_at(herd, 2))
        herd.file.write_text("receivers: {ops: {kind: nonsense}}")
        await receivers.reload()
        names.append(receivers.names)
        herd.declare(ops=webhook(hook), dev=webhook(other))
        await receivers.reload()
        names.append(receivers.names)
        await herd.alarm("ops", "dev", rule="b")
        await hook.until(lambda: len(hook.got) == 2)
        await other.until(lambda: len(other.got) == 1)
    assert names == [("ops",), ("ops", "dev")]
    assert (rules(hook), rules(other)) == (["a", "b"], ["b"])


async def test_all_managers_know_how_a_receiver_is_and_any_of_them_can_try_it(
    herd: Herd, hook: Receiver
) -> None:
    """No URL is shown; a test changes nothing of what waits."""
    herd.declare(
        ops=webhook(hook, fallback=True),
        pager={"kind": "pagerduty", "routing_key": "${file:key}", "url": hook.url},
    )
    (herd.file.parent / "key").write_text("very-secret")
    hook.always = 404
    async with herd.manager(), herd.manager(Rota(on=False)) as idle:
        await herd.alarm("ops")
        await until(lambda: _is(herd, ReceiverState.FAILING))
        listed = (await idle.listed()).receivers
        assert [(each.name, each.kind, each.fallback, each.state) for each in listed] == [
            ("ops", "webhook", True, ReceiverState.FAILING),
            ("pager", "pagerduty", False, ReceiverState.NEW),
        ]
        assert listed[0].last_error == "HTTP 404"
        assert b"secret" not in msgspec.json.encode(listed)
        refused, unknown = await idle.test("ops"), await idle.test("nobody")
        assert refused is not None
        assert (refused.delivered, refused.reason, unknown) == (False, "HTTP 404", None)
        hook.always = 204
        taken = await idle.test("pager")
        assert taken is not None
        assert taken.delivered
    actions = [got.event.get("event_action") for got in hook.got if b"dedup_key" in got.body]
    assert actions == ["trigger", "resolve"]


async def _is_resolved(herd: Herd) -> bool:
    return [event.type for event in await herd.alarms_about_receivers()][-1:] == [EventType.ALARM_RESOLVED]


async def test_what_is_told_of_a_receiver_that_is_in_the_file_no_more_is_taken_back(
    herd: Herd, hook: Receiver, other: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody would find it back; when it returns it gets what it missed, and its time begins anew."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 50)
    herd.declare(ops=webhook(hook), dev=webhook(other, fallback=True))
    hook.always = 503
    async with herd.manager() as receivers, herd.manager(Rota(on=False)):
        await herd.alarm("ops", rule="a")
        await other.until(lambda: len(other.got) == 1)
        herd.declare(dev=webhook(other, fallback=True))
        await receivers.reload()
        await until(lambda: _is_resolved(herd))
        monkeypatch.setattr(health, "AWAY_AFTER_MS", 3_600_000)
        tries = len(hook.got)
        herd.declare(ops=webhook(hook), dev=webhook(other, fallback=True))
        await receivers.reload()
        await hook.until(lambda: len(hook.got) > tries)
        await until(lambda: _is(herd, ReceiverState.FAILING))
        hook.always = 204
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
    assert rules(hook)[-1] == "a"
    assert [event.type for event in await herd.alarms_about_receivers()] == [
        EventType.ALARM_FIRING,
        EventType.ALARM_RESOLVED,
    ]


async def test_only_the_manager_that_would_tell_a_receiver_takes_back_what_is_told_of_it(
    herd: Herd, hook: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has not read the file again would do so of receivers that are new."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 0)
    idle = Rota(on=False)
    herd.declare()
    async with herd.manager(idle) as late:
        assert late.names == ()
        herd.declare(ops=webhook(hook))
        hook.always = 503
        async with herd.manager():
            await herd.alarm("ops")
            await until(lambda: _is(herd, ReceiverState.AWAY))
            idle.denied = 0
            await until(lambda: _was_denied(idle))
            assert await _is(herd, ReceiverState.AWAY)
        idle.on = True
        await until(lambda: _is(herd, ReceiverState.NEW))


async def _was_denied(rota: Rota) -> bool:
    return rota.denied > 2
