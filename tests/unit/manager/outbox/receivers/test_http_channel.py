"""An event of several incidents at a pager that takes some requests and refuses others."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from manager.outbox.outcomes import Refusal
from manager.outbox.receivers.channel import HttpChannel, Taken
from manager.outbox.receivers.samples import sample_events
from tests.unit.manager.outbox.receivers.test_payloads import receiver

if TYPE_CHECKING:
    from manager.outbox.http_poster import HttpPoster
    from protocol.messages.events import Event

LIMIT = Refusal("HTTP 429", 60_000)
WRONG = Refusal("HTTP 400", is_final=True)


class Pager:
    """Answers as it is told, in order, and then takes all; `got` are the keys of what it was asked."""

    def __init__(self, *answers: Refusal | None) -> None:
        self._answers = list(answers)
        self.got: list[str] = []

    def clock(self) -> float:
        return 0.0

    async def post(self, _url: object, body: bytes, *_: object) -> Refusal | None:
        self.got.append(msgspec.json.decode(body)["dedup_key"])
        return self._answers.pop(0) if self._answers else None


def alarms(count: int, event_id: int = 7) -> Event:
    """So many tasks whose alarm begins."""
    event = sample_events()[0]
    assert event.alarm is not None
    subject = event.alarm.subjects[0]
    subjects = tuple(msgspec.structs.replace(subject, task=f"t{number}") for number in range(count))
    notice = msgspec.structs.replace(event.alarm, subjects=subjects, count=count)
    return msgspec.structs.replace(event, id=event_id, alarm=notice)


def channel(pager: Pager) -> HttpChannel:
    return HttpChannel(receiver("pagerduty"), None, cast("HttpPoster", pager))


async def test_a_limit_is_come_past() -> None:
    """What was taken is not sent again: or the limit would be reached at the same place each time."""
    pager = Pager(None, None, LIMIT, None, LIMIT)
    to_pager, event = channel(pager), alarms(5)
    assert await to_pager.send(event) == LIMIT
    assert await to_pager.send(event) == LIMIT
    assert await to_pager.send(event) == Taken()
    keys = list(dict.fromkeys(pager.got))
    assert pager.got == [*keys[:3], *keys[2:4], *keys[3:]]


async def test_another_event_begins_at_its_beginning() -> None:
    """One that was given up half way is over."""
    pager = Pager(None, LIMIT)
    to_pager = channel(pager)
    assert await to_pager.send(alarms(2)) == LIMIT
    assert await to_pager.send(alarms(2, event_id=8)) == Taken()
    assert len(pager.got) == 4


async def test_one_that_is_refused_for_good_holds_up_no_other() -> None:
    """It is said; an event of which nothing is taken is refused as a whole."""
    pager = Pager(None, WRONG, None)
    assert await channel(pager).send(alarms(3)) == Taken("1 of 3 were refused: HTTP 400")
    assert len(pager.got) == 3
    assert await channel(Pager(WRONG, WRONG)).send(alarms(2)) == WRONG
