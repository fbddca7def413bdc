"""Sending one event: the request and its signature (after Standard Webhooks), and what became of it."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, DummyCookieJar

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import ClientResponse

    from manager.outbox.webhooks.secret import Secret
    from manager.outbox.webhooks.webhook import Webhook
    from protocol.messages.events import Event

ANSWER_S = 10.0
"""How long a receiver may take to answer, connecting included."""

_encode = msgspec.json.Encoder().encode


class Refusal(NamedTuple):
    """Why an event was not taken, without anything of the URL, and when to come again if that was said."""

    reason: str
    retry_after_ms: int = 0


class Poster:
    """Sends events over connections that are kept; used in an `async with` block."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._session = ClientSession(
            timeout=ClientTimeout(total=ANSWER_S),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": "sparkherd", "Content-Type": "application/json"},
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def post(self, webhook: Webhook, event: Event) -> Refusal | None:
        """Send `event`; None when it was taken."""
        body = _encode(event)
        headers = signed(event.id, int(self._clock()), body, webhook.secret)
        try:
            async with self._session.post(
                webhook.url, data=body, headers=headers, allow_redirects=False
            ) as response:
                return _judge(response)
        except TimeoutError:
            return Refusal(f"no answer within {ANSWER_S:g} s")
        except (ClientError, OSError) as error:
            return Refusal(_reason(error))


def signed(number: int, at_s: int, body: bytes, secret: Secret | None) -> dict[str, str]:
    """The headers of a message: its id, when it was sent, and the signature of both and the body."""
    headers = {"webhook-id": str(number), "webhook-timestamp": str(at_s)}
    if secret is not None:
        headers["webhook-signature"] = "v1," + secret.sign(b"%d.%d.%b" % (number, at_s, body))
    return headers


def _judge(response: ClientResponse) -> Refusal | None:
    if HTTPStatus(200) <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    retry_after = response.headers.get("Retry-After", "")
    seconds = int(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0
    return Refusal(f"HTTP {response.status}", seconds * 1000)


def _reason(error: Exception) -> str:
    """What went wrong; aiohttp's own words may have the URL in them."""
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    return getattr(cause, "strerror", None) or type(error).__name__
