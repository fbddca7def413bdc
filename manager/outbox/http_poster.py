"""Sending a request that tells something, its signature (after Standard Webhooks), and what became of it."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, DummyCookieJar

from manager.outbox.outcomes import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from aiohttp import ClientResponse
    from yarl import URL

    from manager.outbox.webhooks.secret import Secret

ANSWER_S = 10.0
"""How long a receiver may take to answer, connecting included."""
LONGEST_NUMBER = 9
"""Digits of a `Retry-After` that are read; Python refuses to read some thousands."""


class HttpPoster:
    """Sends over connections that are kept."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._session = ClientSession(
            timeout=ClientTimeout(total=ANSWER_S),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            headers={"User-Agent": "sparkherd", "Content-Type": "application/json"},
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._session.close()

    async def post(
        self, url: URL, body: bytes, headers: Mapping[str, str], finals: Collection[int] = ()
    ) -> Refusal | None:
        """Send `body`, JSON, and see what is answered; redirects lead nowhere.

        Args:
            url: where to; it may be a secret, and no reason has it.
            body: what.
            headers: beside the usual ones.
            finals: statuses by which this system says that it will never take this body.

        Returns:
            None when it was taken.
        """
        try:
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                return _judge(response, finals)
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


def _judge(response: ClientResponse, finals: Collection[int]) -> Refusal | None:
    if HTTPStatus(200) <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        return None
    retry_after = response.headers.get("Retry-After", "")
    seconds = int(retry_after[:LONGEST_NUMBER]) if retry_after.isascii() and retry_after.isdigit() else 0
    return Refusal(f"HTTP {response.status}", seconds * 1000, is_final=response.status in finals)


def _reason(error: Exception) -> str:
    """What went wrong; aiohttp's own words may have the URL in them."""
    cause = error.os_error if isinstance(error, ClientConnectorError) else error
    return getattr(cause, "strerror", None) or type(error).__name__
