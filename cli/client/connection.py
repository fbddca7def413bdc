"""One connection to a manager: it comes about in seconds or not at all, and is then waited on for longer."""

from __future__ import annotations

import http.client
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator
    from urllib.parse import SplitResult

CONNECT_S: Final = 5.0
"""A manager that is out of reach must not keep anybody for as long as one that works."""


class UnconnectedError(Exception):
    """There was no connection to send anything on, for the reason that is its cause."""


@contextmanager
def connected(
    place: SplitResult, timeout_s: float, tls: ssl.SSLContext | None
) -> Iterator[http.client.HTTPConnection]:
    """A connection to the host of `place`, closed afterwards.

    Args:
        place: a URL of http or https.
        timeout_s: seconds without a byte after which a read or a write is given up; a connection that takes
            longer than `CONNECT_S` does not come about either.
        tls: what to make of https.

    Raises:
        UnconnectedError: nothing was sent.
    """
    connection = _of(place, min(CONNECT_S, timeout_s), tls)
    try:
        try:
            connection.connect()
        except (OSError, http.client.HTTPException) as error:
            raise UnconnectedError from error
        connection.sock.settimeout(timeout_s)
        yield connection
    finally:
        connection.close()


def _of(place: SplitResult, timeout_s: float, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    host = place.hostname or ""
    if place.scheme == "https":
        return http.client.HTTPSConnection(host, place.port, timeout=timeout_s, context=tls)
    return http.client.HTTPConnection(host, place.port, timeout=timeout_s)


@contextmanager
def told_after(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """`tell` is called, by another thread, if what is done inside takes longer than `seconds`."""
    timer = threading.Timer(seconds, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
