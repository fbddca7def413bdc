"""A webhook as a subscriber of the log: it is told everything."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from manager.outbox.http_poster import signed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from manager.outbox.http_poster import HttpPoster
    from manager.outbox.outcomes import Refusal
    from manager.outbox.webhooks.webhook import Webhook
    from protocol.messages.events import Event

_encode = msgspec.json.Encoder().encode


class WebhookSubscriber:
    """Posts every event as it is."""

    longest_pause_ms: int | None = None

    def __init__(self, webhook: Webhook, poster: HttpPoster) -> None:
        self._webhook = webhook
        self._poster = poster

    @property
    def name(self) -> str:
        """By which it is known in the database and the log."""
        return self._webhook.name

    @property
    def about(self) -> Mapping[str, str]:
        """Its name."""
        return {"webhook": self._webhook.name}

    def wants(self, event: Event) -> bool:
        """Whatever it is."""
        del event
        return True

    async def begin(self) -> None:
        """Nothing is to be done."""

    async def post(self, event: Event) -> Refusal | None:
        """Send `event`; None when it was taken."""
        body = _encode(event)
        headers = signed(event.id, int(self._poster.clock()), body, self._webhook.secret)
        return await self._poster.post(self._webhook.url, body, headers)

    async def caught_up(self, position: int) -> None:
        """Nothing is to be done."""

    def gave_up(self, event: Event) -> None:
        """It never comes to that."""

    def end(self) -> None:
        """Nothing is to be done."""
