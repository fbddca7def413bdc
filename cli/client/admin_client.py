"""A small admin client of the manager: one request, one answer, errors with their codes."""

from __future__ import annotations

import http.client
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from cli.client.connection import UnconnectedError, connected, told_after
from configuration.settings import SettingsError
from protocol.errors import ErrorCode, RefusedError
from protocol.messages.base import Response
from protocol.messages.tasks import Problem
from protocol.request_timeouts import client_wait_s
from worker.client.answers import is_redirect, redirected
from worker.client.bearer import Bearer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator, Sequence

IDEMPOTENT: Final = frozenset({"GET", "PUT", "DELETE"})
LONG_S: Final = 5.0
"""Whoever waits longer wants to know for whom."""
NOT_A_MANAGER: Final = "what answers there is not a sparkherd manager"

R = TypeVar("R", bound=Response | msgspec.Struct | msgspec.Raw)


class UnreachableError(Exception):
    """No manager answered; the text is one line that says what to change.

    `was_sent` is whether one may have done all the same what it was asked for.
    """

    def __init__(self, message: str, *, was_sent: bool = False) -> None:
        super().__init__(message)
        self.was_sent = was_sent


class GatewayError(Exception):
    """Something between us and a manager answered for it; whether that was asked is not known."""


class RedirectError(RefusedError):
    """An answer that leads elsewhere, which no manager gives: it has heard nothing."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


UNANSWERED: Final = (UnconnectedError, OSError, http.client.HTTPException)
"""What a connection may raise to which nobody answers."""


class _ErrorBody(msgspec.Struct):
    """What every refusal has in it (protocol §2.1)."""

    error: str
    message: str = ""
    coordinator: dict[str, str] | None = None
    problems: tuple[Problem, ...] = ()
    limit_bytes: int | None = None
    was_sent: bool = True


class AdminClient:
    """Talks to the first manager of `urls` that answers, and to the group's coordinator when told so.

    A manager that cannot do it now is passed over like one that does not answer, if asking twice for the same
    does no harm: it may have done it all the same. So is what no manager answers: a redirect, which is not
    followed, and a gateway's 5xx.

    Raises `RefusedError` for an answer that carries an error code and `UnreachableError` when nobody answers.
    A refusal for now (COORDINATOR_NOT_AVAILABLE) says as `was_sent` whether it may have been done even so.
    """

    def __init__(
        self,
        urls: Sequence[str],
        *,
        timeout_s: float | None = None,
        bearer: Bearer | None = None,
        tls: ssl.SSLContext | None = None,
        on_wait: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`bearer` has the token to show; `tls` says what to make of https:// URLs.

        `timeout_s` is how many seconds each manager has to answer; None goes by `protocol.request_timeouts`.
        `on_wait` is told, by another thread, for whom one waits when that takes long.
        """
        self.urls = [_checked(url) for url in urls]
        self._timeout_s = timeout_s
        self._bearer = bearer or Bearer()
        self._tls = tls
        self._on_wait = on_wait

    def giving_up_after(self, timeout_s: float) -> AdminClient:
        """A client of the same managers that waits `timeout_s` seconds for all of them together."""
        return AdminClient(
            self.urls, timeout_s=timeout_s / len(self.urls), bearer=self._bearer, tls=self._tls
        )

    def get(self, path: str, into: type[R]) -> R:
        """Read `path`."""
        return self.call("GET", path, into=into)

    def call(self, method: str, path: str, body: Any = None, *, into: type[R], held_s: float = 0.0) -> R:
        """Send one request; `path` comes from `path_of`.

        `held_s` is for how many seconds the answer may be held, beyond the time that the work takes.
        """
        sent = b"" if body is None else msgspec.json.encode(body)
        status, document = self._send(method, path, sent, held_s)
        if status >= http.client.BAD_REQUEST:
            raise refusal(status, document)
        try:
            return msgspec.json.decode(document, type=into)
        except msgspec.MsgspecError as error:
            raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{NOT_A_MANAGER} ({error})") from None

    def _send(self, method: str, path: str, body: bytes, held_s: float) -> tuple[int, bytes]:
        last: BaseException | None = None
        refused: RefusedError | None = None
        was_sent = False
        for url in self.urls:
            try:
                status, document = self._follow(url, method, path, body, held_s)
            except RedirectError as error:
                refused = refused or error
                continue
            except (*UNANSWERED, GatewayError) as error:
                last = error
                was_sent = was_sent or not isinstance(error, UnconnectedError)
                if isinstance(error, GatewayError) and method not in IDEMPOTENT:
                    break
                continue
            if status != ErrorCode.COORDINATOR_NOT_AVAILABLE.status or method not in IDEMPOTENT:
                return status, document
            refused = refusal(status, document)
            was_sent = was_sent or _error_body(document).was_sent
        if refused is None:
            raise self.unreachable(last, was_sent=was_sent)
        refused.failure.fields["was_sent"] = was_sent
        raise refused

    def unreachable(self, reason: BaseException | None, *, was_sent: bool = False) -> UnreachableError:
        """What there is to say when none of the managers answered, the last one for `reason`."""
        return UnreachableError(
            f"no manager answers at {', '.join(self.urls)} ({_reason(reason)}); "
            "start one with `sparkherd manager`, or name it with --manager URL",
            was_sent=was_sent,
        )

    def _follow(self, url: str, method: str, path: str, body: bytes, held_s: float) -> tuple[int, bytes]:
        """Ask `url`; when another manager has the group, ask that one, once."""
        status, document = self._exchange(url, method, path, body, held_s)
        if status == ErrorCode.NOT_COORDINATOR.status and (owner := _error_body(document).coordinator):
            return self._exchange(owner["url"], method, path, body, held_s)
        return status, document

    def _exchange(self, url: str, method: str, path: str, body: bytes, held_s: float) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        timeout_s = self._timeout_s or held_s + client_wait_s(len(body))
        told = f"waiting for {url}, for {timeout_s:.0f} s at most"
        with (
            told_after(LONG_S, lambda: self._on_wait(told)),
            self.asking(url, method, path, body=body, headers=headers, timeout_s=timeout_s) as answer,
        ):
            document = answer.read()
            if is_gateway(answer.status, document):
                raise GatewayError(f"{url} answered HTTP {answer.status}, not as a manager does")
            return answer.status, document

    @contextmanager
    def asking(
        self,
        url: str,
        method: str,
        path: str,
        *,
        body: bytes = b"",
        headers: dict[str, str],
        timeout_s: float,
    ) -> Iterator[http.client.HTTPResponse]:
        """One request on a connection of its own; inside, its answer can be read.

        Raises:
            UnconnectedError: nothing was sent.
            RedirectError: the answer leads elsewhere; nothing was done.
        """
        parts = urlsplit(url)
        with connected(parts, timeout_s, self._tls) as connection:
            all_headers = {**headers, **self._bearer.headers}
            with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it heard all
                connection.request(method, parts.path.rstrip("/") + path, body, all_headers)
            with connection.getresponse() as answer:
                if is_redirect(answer.status):
                    told = redirected(url, answer.status, answer.headers.get("Location"))
                    raise RedirectError(told)
                yield answer


def path_of(*parts: str) -> str:
    """The path of a resource, as `/v1/groups/flights`; each part is quoted."""
    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _checked(url: str) -> str:
    """`url` without what is not sent and may be secret: a user's password, what stands after ? or #."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        shown = re.sub("//.*@", "//", url)
        raise SettingsError(f"--manager: expected a URL as http://HOST:PORT, got {shown!r}")
    place = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{place}{parts.path}".rstrip("/")


def refusal(status: int, document: bytes) -> RefusedError:
    """An answer that is none, as an error with its code."""
    body = _error_body(document)
    fields: dict[str, Any] = {"problems": body.problems} if body.problems else {}
    if body.limit_bytes is not None:
        fields["limit_bytes"] = body.limit_bytes
    message = body.message or f"the manager answered HTTP {status}"
    return RefusedError(ErrorCode.of(body.error), message, **fields)


def is_gateway(status: int, document: bytes) -> bool:
    """Whether not a manager but something before it is in trouble: a 5xx without a code of ours."""
    try:
        code = msgspec.json.decode(document, type=_ErrorBody).error
    except msgspec.MsgspecError:
        code = ""
    return status >= http.client.INTERNAL_SERVER_ERROR and code not in ErrorCode.__members__


def _error_body(document: bytes) -> _ErrorBody:
    try:
        return msgspec.json.decode(document, type=_ErrorBody)
    except msgspec.MsgspecError:
        return _ErrorBody(ErrorCode.UNKNOWN_SERVER_ERROR.name, NOT_A_MANAGER)


def _reason(error: BaseException | None) -> str:
    if isinstance(error, UnconnectedError):
        error = error.__cause__
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, GatewayError):
        return str(error)
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
