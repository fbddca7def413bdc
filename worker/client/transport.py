"""One HTTP request and its answer, with every trouble as a value."""

from __future__ import annotations

import asyncio
import errno
import os
from typing import TYPE_CHECKING, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from protocol.errors import ErrorCode, Failure
from worker.client.answers import read_answer, refused, unreachable
from worker.client.bearer import Bearer

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

Body = TypeVar("Body", bound=msgspec.Struct)

CONNECT_TIMEOUT_S = 2.0
_HEADERS = {"Content-Type": "application/json"}


class Transport:
    """A pool of connections; used as an asynchronous context manager.

    Args:
        bearer: the token that every request carries.
        tls: what to make of https:// URLs; as the machine's defaults have it without one.
    """

    _session: aiohttp.ClientSession

    def __init__(self, bearer: Bearer | None = None, tls: ssl.SSLContext | None = None) -> None:
        self._bearer = bearer or Bearer()
        self._tls = tls

    async def __aenter__(self) -> Self:
        """Open the pool; no connection is made yet."""
        # Held requests of one worker are few, but none may ever wait for a free connection.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._tls or True),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT_S),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._session.close()

    async def get(self, url: str, expected: type[Body], timeout_s: float) -> Body | Failure:
        """The answer to a GET within `timeout_s` seconds."""
        return await self._ask("GET", url, None, expected, timeout_s)

    async def post(
        self, url: str, body: msgspec.Struct, expected: type[Body], timeout_s: float
    ) -> Body | Failure:
        """The answer to a POST of `body` within `timeout_s` seconds."""
        return await self._ask("POST", url, msgspec.json.encode(body), expected, timeout_s)

    async def _ask(
        self, method: str, url: str, data: bytes | None, expected: type[Body], timeout_s: float
    ) -> Body | Failure:
        answer = await self._ask_once(method, url, data, expected, timeout_s)
        if isinstance(answer, Failure) and answer.code is ErrorCode.UNAUTHENTICATED and self._bearer.renew():
            return await self._ask_once(method, url, data, expected, timeout_s)
        return answer

    async def _ask_once(
        self, method: str, url: str, data: bytes | None, expected: type[Body], timeout_s: float
    ) -> Body | Failure:
        headers = {**_HEADERS, **self._bearer.headers}
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._session.request(
                    method, url, data=data, headers=headers, allow_redirects=False
                ) as response,
            ):
                body, location = await response.read(), response.headers.get("Location")
                return read_answer(_origin(url), response.status, body, expected, location)
        except TimeoutError:
            return unreachable(f"{_origin(url)} gave no answer within {timeout_s:g} s")
        except (aiohttp.ClientError, OSError) as error:
            tell = refused if _errno(error) == errno.ECONNREFUSED else unreachable
            return tell(f"{_origin(url)}: {_reason(error)}")


def _origin(url: str) -> str:
    """`http://HOST:PORT` of a URL, which is all that a reader of an error needs; no password of a user."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _errno(error: Exception) -> int | None:
    return error.os_error.errno if isinstance(error, aiohttp.ClientConnectorError) else None


def _reason(error: Exception) -> str:
    number = _errno(error)
    if number is not None and number in errno.errorcode:
        return os.strerror(number).lower()
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the connection was closed before an answer came"
    return str(error) or type(error).__name__
