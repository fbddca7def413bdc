"""What is told beside the log: to each receiver until it takes it, and what a repeat of it looks like."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import pytest

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers import direct
from manager.outbox.receivers.channel import Taken
from manager.outbox.receivers.direct import DirectMessages
from manager.outbox.receivers.incidents import incidents_of
from manager.outbox.receivers.mail import message_id
from manager.outbox.receivers.template import built_in_template
from protocol.messages.alarm_notice import AlarmNotice, AlarmSubject, Severity
from protocol.messages.events import Event, EventType
from tests.fakes.turns import settle, until

if TYPE_CHECKING:
    from collections.abc import Mapping

MINUTE = 60_000


def event(
    *receivers: str, at_ms: int = 0, number: int = 0, manager: str | None = None, **more: bool
) -> Event:
    """That the database fails, or that a manager is gone."""
    notice = AlarmNotice(
        rule="failing",
        kind="database_failing" if manager is None else "manager_gone",
        severity=Severity.CRITICAL,
        receivers=receivers,
        subjects=(AlarmSubject(since_ms=0, manager=manager),),
        count=1,
        **more,
    )
    return Event(id=number, at_ms=at_ms, type=EventType.ALARM_FIRING, alarm=notice)


class ReceiversDouble:
    """Each refuses as often as it is said to."""

    def __init__(self, refusals: Mapping[str, int], *, is_final: bool = False) -> None:
        self.version = 0
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.left = Counter(refusals)
        self.tried: Counter[str] = Counter()
        self._is_final = is_final

    def open(self, name: str) -> ChannelDouble | None:
        if name == "nobody":
            return None
        self.opened.append(name)
        return ChannelDouble(self, name)

    def answer(self, name: str) -> Taken | Refusal:
        self.tried[name] += 1
        self.left[name] -= 1
        return Refusal("HTTP 503", is_final=self._is_final) if self.left[name] >= 0 else Taken()


class ChannelDouble:
    """To one of them."""

    def __init__(self, receivers: ReceiversDouble, name: str) -> None:
        self._receivers = receivers
        self._name = name

    async def send(self, event: Event) -> Taken | Refusal:
        del event
        return self._receivers.answer(self._name)

    def close(self) -> None:
        self._receivers.closed.append(self._name)


async def test_each_is_told_until_it_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """None waits for another; one that is not in the file any more is no trouble."""
    monkeypatch.setattr(direct, "FIRST_PAUSE_S", 0.0)
    receivers = ReceiversDouble({"a": 3, "b": 10**9})
    messages = DirectMessages(receivers)
    messages.tell(event("a", "b", "c", "nobody"))
    await until(lambda: messages.untold("failing") == ("b",))
    assert (receivers.tried["a"], receivers.tried["c"]) == (4, 1)
    messages.drop("failing")
    await settle()
    tried = receivers.tried["b"]
    await settle()
    assert receivers.tried["b"] == tried
    assert messages.untold("failing") == ()


async def test_a_later_word_takes_the_place_of_one_that_waits() -> None:
    """That it still fails, of the same alarm; at the end nothing is under way."""
    receivers = ReceiversDouble({"a": 1})
    messages = DirectMessages(receivers)
    messages.tell(event("a"))
    await until(lambda: receivers.tried["a"] == 1)
    messages.tell(event("a", is_repeat=True))
    await until(lambda: messages.untold("failing") == ())
    assert receivers.tried["a"] == 2
    await messages.stop()


async def test_one_way_is_kept_for_a_message_until_the_file_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It knows which of several addresses has got the message; what is in the file by now counts."""
    monkeypatch.setattr(direct, "FIRST_PAUSE_S", 0.0)
    receivers = ReceiversDouble({"a": 10**9})
    messages = DirectMessages(receivers)
    messages.tell(event("a"))
    await until(lambda: receivers.tried["a"] >= 3)
    assert (receivers.opened, receivers.closed) == (["a"], [])
    receivers.version += 1
    await until(lambda: len(receivers.opened) == 2)
    receivers.left["a"] = 0
    await until(lambda: messages.untold("failing") == ())
    assert receivers.opened == receivers.closed == ["a", "a"]


async def test_what_will_never_be_taken_is_given_up() -> None:
    """It is no longer tried, and not told from the log either."""
    receivers = ReceiversDouble({"a": 10**9}, is_final=True)
    messages = DirectMessages(receivers)
    messages.tell(event("a"))
    await until(lambda: messages.untold("failing") == ())
    assert receivers.tried["a"] == 1


def test_mails_of_several_managers_are_one_and_a_later_outage_is_another() -> None:
    """By their Message-ID; one that is told again, or from the log, has its own."""
    at_ms = 600 * MINUTE
    told = [
        event(at_ms=at_ms),
        event(at_ms=at_ms + 9 * MINUTE),
        event(at_ms=at_ms + 11 * MINUTE),
        event(at_ms=at_ms, is_repeat=True),
        event(at_ms=at_ms, number=7),
    ]
    ids = [message_id("ops", "herd@example.com", each) for each in told]
    assert ids[0] == ids[1]
    assert len({*ids}) == 4


def test_managers_and_the_database_have_incidents_of_their_own() -> None:
    """The same key, whoever tells it, directly or from the log."""
    (of_database,), (of_manager,) = (incidents_of(event()), incidents_of(event(manager="m:1")))
    assert of_database.key == "sparkherd/failing"
    assert of_manager.key == "sparkherd/failing/manager m:1"
    (from_log,) = incidents_of(msgspec.structs.replace(event(), id=7))
    assert from_log.key == of_database.key


@pytest.mark.parametrize(
    ("manager", "headline", "hint"),
    [
        ("m:1", "FIRING (critical): failing, manager m:1", "Look whether its process runs"),
        (None, "FIRING (critical): failing", "Look whether the database runs"),
    ],
)
def test_a_message_says_which_manager_and_what_to_try(manager: str | None, headline: str, hint: str) -> None:
    """Of no group."""
    told = built_in_template("slack").render(event(manager=manager), None)
    assert told.headline == headline
    assert hint in told.text
