"""Following events: a stream that comes back by itself, at any manager, where it was."""

from __future__ import annotations

import http.client
import time
from typing import TYPE_CHECKING, Final

from cli.client.admin_client import (
    UNANSWERED,
    GatewayError,
    RedirectError,
    UnreachableError,
    is_gateway,
    refusal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from cli.client.admin_client import AdminClient

SILENCE_S: Final = 45.0
"""A stream that has missed three of its heartbeats is broken."""
RETRY_S: Final = 1.0


class EventStream:
    """The JSON of each event, for ever.

    Args:
        client: knows the managers; they are tried in order.
        path: of the events, with what is asked of them.
        after: the last event that was seen; None begins with the oldest that is kept.
        on_loss: told once whenever nobody answers any more; it goes on trying.
    """

    def __init__(
        self, client: AdminClient, path: str, after: int | None, on_loss: Callable[[UnreachableError], None]
    ) -> None:
        self._client = client
        self._path = path
        self._after = after
        self._on_loss = on_loss
        self._was_answered = self._is_lost = False

    def __iter__(self) -> Generator[bytes]:
        """Until the caller has enough.

        Raises:
            UnreachableError: nobody answered in the first place.
            RefusedError: the manager has no such events.
        """
        while True:
            try:
                yield from self._told_by_any()
            except UnreachableError as error:
                if not self._was_answered:
                    raise
                if not self._is_lost:
                    self._on_loss(error)
                self._is_lost = True
            time.sleep(RETRY_S)

    def _told_by_any(self) -> Iterator[bytes]:
        """What the first manager that answers has to tell, until the connection ends."""
        last: BaseException | None = None
        elsewhere: RedirectError | None = None
        for url in self._client.urls:
            try:
                yield from self._told_by(url)
            except RedirectError as error:
                elsewhere = elsewhere or error
            except (*UNANSWERED, GatewayError) as error:
                last = error
            else:
                return
        if elsewhere is not None and not self._was_answered:
            raise elsewhere
        raise self._client.unreachable(last or elsewhere)

    def _told_by(self, url: str) -> Iterator[bytes]:
        headers = {"Accept": "text/event-stream"}
        if self._after is not None:
            headers["Last-Event-ID"] = str(self._after)
        with self._client.asking(url, "GET", self._path, headers=headers, timeout_s=SILENCE_S) as answer:
            if answer.status == http.client.SERVICE_UNAVAILABLE:
                raise http.client.HTTPException("it is starting or stopping")
            if answer.status >= http.client.BAD_REQUEST:
                document = answer.read()
                if is_gateway(answer.status, document):
                    raise GatewayError(f"{url} answered HTTP {answer.status}, not as a manager does")
                raise refusal(answer.status, document)
            self._was_answered, self._is_lost = True, False
            yield from self._read(answer)

    def _read(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The data of each event; its id is kept once the caller has it."""
        seen, data = self._after, b""
        for line in lines:
            name, _, value = line.rstrip(b"\r\n").partition(b": ")
            if name == b"id":
                seen = int(value)
            elif name == b"data":
                data = value
            elif not name:
                if data:
                    yield data
                self._after, data = seen, b""
