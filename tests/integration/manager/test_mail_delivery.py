"""Alarms by mail to several addresses, one of which is refused (SQLite and PostgreSQL)."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from manager.outbox.receivers import health
from manager.outbox.receivers.subscriber import PREFIX
from manager.storage.base import StorageError
from manager.storage.receiver_health import ReceiverHealth
from protocol.messages.alarm_receivers import ReceiverState
from protocol.messages.events import EventType
from tests.fakes.smtp_server import SmtpServerDouble
from tests.integration.manager.alarm_herd import Herd, Rota, hurry, until
from tests.integration.manager.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.integration.manager.backends import Database

FULL = "452 4.2.2 mailbox full"
B = "RCPT:b@example.com"
BEHIND = f"{PREFIX}ops/b@example.com"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of milliseconds."""
    hurry(monkeypatch)


@pytest.fixture
async def server() -> AsyncIterator[SmtpServerDouble]:
    opened = SmtpServerDouble()
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def herd(database: Database, tmp_path: Path, server: SmtpServerDouble) -> AsyncIterator[Herd]:
    made = Herd(database.url, tmp_path)
    made.declare(server, ops=mail())
    async with made.open():
        yield made


def mail(*names: str, **more: Any) -> dict[str, Any]:
    return {"kind": "email", "to": [f"{name}@example.com" for name in names or ("a", "b", "c")], **more}


def got(server: SmtpServerDouble, name: str) -> list[str]:
    """The rules of the mails that an address has got, in order."""
    return [
        str(each.message["Subject"]).split(": ")[1].split(" ")[0]
        for each in server.mails
        if f"{name}@example.com" in each.to
    ]


async def state(herd: Herd) -> ReceiverState:
    """Of the address that is behind, as it is stored."""
    return (await herd.health("ops/b@example.com")).state


async def test_a_full_mailbox_holds_up_no_other_and_gets_all_in_the_end(
    herd: Herd, server: SmtpServerDouble
) -> None:
    """Each mail once and in order, to everybody; then all are mailed together again."""
    server.always[B] = FULL
    async with herd.manager():
        for rule in "xyz":
            await herd.alarm("ops", rule=rule)
        await server.until(lambda: got(server, "c") == list("xyz"))
        assert (got(server, "a"), got(server, "b")) == (list("xyz"), [])
        del server.always[B]
        await server.until(lambda: got(server, "b") == list("xyz"))
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
        await herd.alarm("ops", rule="last")
        await server.until(lambda: got(server, "b")[-1] == "last")
    assert [got(server, name) for name in "abc"] == [[*"xyz", "last"]] * 3
    assert len(server.mails[-1].to) == 3


async def _is(herd: Herd, wanted: ReceiverState) -> bool:
    return await state(herd) is wanted


async def test_another_manager_knows_who_is_behind_and_who_has_had_what(
    herd: Herd, server: SmtpServerDouble
) -> None:
    """A mailbox that is full for days outlives managers; nobody else gets a mail again because of it."""
    server.always[B] = FULL
    async with herd.manager():
        await herd.alarm("ops", rule="x")
        await server.until(lambda: got(server, "c") == ["x"])
        await until(lambda: _is(herd, ReceiverState.FAILING))
    async with herd.manager():
        await herd.alarm("ops", rule="y")
        await server.until(lambda: got(server, "c") == ["x", "y"])
        del server.always[B]
        await server.until(lambda: got(server, "b") == ["x", "y"])
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
    assert [got(server, name) for name in "abc"] == [["x", "y"]] * 3


async def test_an_address_that_is_refused_for_long_is_told_as_away_and_back(
    herd: Herd, server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the fallbacks, once, by its name; its receiver is shown so, too, and the others get their mail."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 50)
    other = Receiver()
    await other.open()
    herd.declare(server, ops=mail(), dev={"kind": "webhook", "url": other.url, "fallback": True})
    server.always[B] = FULL
    async with herd.manager() as receivers:
        await herd.alarm("ops", rule="x")
        await other.until(lambda: bool(other.got))
        shown = (await receivers.listed()).receivers[0]
        assert (shown.state, shown.last_error) == (ReceiverState.AWAY, f"b@example.com: {FULL}")
        assert herd.away("ops") == 1
        await herd.alarm("ops", rule="y")
        await server.until(lambda: got(server, "a") == ["x", "y"])
        del server.always[B]
        await other.until(lambda: len(other.got) == 2)
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
        assert herd.away("ops") == 0
    await other.close()
    told = await herd.alarms_about_receivers()
    assert [(event.type, event.alarm and event.alarm.rule) for event in told] == [
        (EventType.ALARM_FIRING, "receiver ops/b@example.com"),
        (EventType.ALARM_RESOLVED, "receiver ops/b@example.com"),
    ]


async def test_a_mail_that_nobody_gets_is_waited_for_by_all(herd: Herd, server: SmtpServerDouble) -> None:
    """As with any receiver that is down; then one mail goes to all."""
    for name in "abc":
        server.answers[f"RCPT:{name}@example.com"] = deque(["451 greylisted"] * 3)
    async with herd.manager():
        await herd.alarm("ops", rule="x")
        await server.until(lambda: bool(server.mails))
    assert [len(each.to) for each in server.mails] == [3]
    assert await herd.health("ops/b@example.com") == ReceiverHealth()


async def test_all_addresses_may_be_behind_one_after_the_other(herd: Herd, server: SmtpServerDouble) -> None:
    """Each comes back by itself, whoever is refused still."""
    async with herd.manager():
        for name in "abc":
            server.always[f"RCPT:{name}@example.com"] = FULL
            await herd.alarm("ops", rule=f"after-{name}")
            await until(lambda name=name: _falls_behind(herd, name))
        await herd.alarm("ops", rule="none")
        del server.always["RCPT:c@example.com"]
        await server.until(lambda: got(server, "c")[-1:] == ["none"])
        del server.always["RCPT:a@example.com"], server.always[B]
        everything = [*(f"after-{name}" for name in "abc"), "none"]
        await server.until(lambda: [got(server, name) for name in "abc"] == [everything] * 3)


async def _falls_behind(herd: Herd, name: str) -> bool:
    return (await herd.health(f"ops/{name}@example.com")).state is ReceiverState.FAILING


async def test_that_it_cannot_be_stored_who_is_behind_repeats_no_mail(
    herd: Herd, server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail is not done with, but those who have had it have had it."""
    events, failures = herd.storage.events, iter(range(3))
    part = events.part

    async def fails(*arguments: Any) -> None:
        if next(failures, None) is not None:
            raise StorageError("away")
        await part(*arguments)

    monkeypatch.setattr(events, "part", fails)
    server.always[B] = FULL
    async with herd.manager():
        await herd.alarm("ops", rule="x")
        await herd.alarm("ops", rule="y")
        await server.until(lambda: got(server, "a") == ["x", "y"])
        del server.always[B]
        await server.until(lambda: got(server, "b") == ["x", "y"])
    assert [got(server, name) for name in "abc"] == [["x", "y"]] * 3


async def test_an_address_that_is_in_the_file_no_more_is_no_longer_away(
    herd: Herd, server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps its place for the day it comes back, as a receiver does."""
    monkeypatch.setattr(health, "AWAY_AFTER_MS", 50)
    server.always[B] = FULL
    async with herd.manager() as receivers:
        await herd.alarm("ops", rule="x")
        await until(lambda: _is(herd, ReceiverState.AWAY))
        herd.declare(server, ops=mail("a", "c"))
        await receivers.reload()
        await until(lambda: _is(herd, ReceiverState.NEW))
        await herd.alarm("ops", rule="y")
        await server.until(lambda: got(server, "c") == ["x", "y"])
        del server.always[B]
        herd.declare(server, ops=mail())
        await receivers.reload()
        await server.until(lambda: [got(server, name) for name in "abc"] == [["x", "y"]] * 3)
    assert [event.type for event in await herd.alarms_about_receivers()] == [
        EventType.ALARM_FIRING,
        EventType.ALARM_RESOLVED,
    ]


async def test_one_that_is_refused_for_good_in_the_end_misses_that_mail_and_no_other(
    herd: Herd, server: SmtpServerDouble
) -> None:
    """It is given up after three times, and told; it stays behind until it takes one."""
    server.answers[B] = deque([FULL, FULL, *["552 too large"] * 3])
    async with herd.manager():
        await herd.alarm("ops", rule="x")
        await until(lambda: _gave_up(herd))
        assert await state(herd) is ReceiverState.FAILING
        await herd.alarm("ops", rule="y")
        await server.until(lambda: [got(server, name) for name in "abc"] == [["x", "y"], ["y"], ["x", "y"]])
        await until(lambda: _is(herd, ReceiverState.DELIVERING))


async def _gave_up(herd: Herd) -> bool:
    return herd.counted("ops", "given_up") == 1


async def test_one_of_which_it_is_unknown_whether_it_goes_along_misses_nothing(
    herd: Herd, server: SmtpServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the database was lost: no mail is begun before it is asked again."""
    events, lost = herd.storage.events, asyncio.Event()
    keep_health = events.keep_health

    async def loses_the_answer(name: str, health: ReceiverHealth, *rest: Any) -> None:
        await keep_health(name, health, *rest)
        if name == BEHIND and health.state is ReceiverState.DELIVERING and not lost.is_set():
            lost.set()
            await herd.alarm("ops", rule="y")
            raise StorageError("no answer")

    monkeypatch.setattr(events, "keep_health", loses_the_answer)
    server.answers[B] = deque([FULL])
    async with herd.manager():
        await herd.alarm("ops", rule="x")
        await lost.wait()
        await server.until(lambda: [got(server, name) for name in "abc"] == [["x", "y"]] * 3)
        assert len(server.mails[-1].to) == 3


async def test_who_is_behind_is_mailed_by_the_manager_that_tells_the_others(
    herd: Herd, server: SmtpServerDouble
) -> None:
    """And by no other at the same time."""
    server.always[B] = FULL
    first, second = Rota(), Rota(on=False)
    async with herd.manager(first), herd.manager(second):
        await herd.alarm("ops", rule="x")
        await until(lambda: _is(herd, ReceiverState.FAILING))
        first.on, second.on = False, True
        del server.always[B]
        await herd.alarm("ops", rule="y")
        await server.until(lambda: got(server, "b") == ["x", "y"])
        await until(lambda: _is(herd, ReceiverState.DELIVERING))
    assert got(server, "b") == ["x", "y"]
