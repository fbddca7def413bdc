"""Sessions on the server: how one is opened, or found again, and how it is let go of."""

from __future__ import annotations

import atexit
import contextlib
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import grpc
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import RetryPolicy
from pyspark.sql.connect.session import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "sparkherd"
"""The same for all workers unless the URL names one: a session is found again by user and id."""
_SMALL = {"Config", "ReleaseSession", "ReleaseExecute", "FetchErrorDetails"}
DEADLINE_S = 30.0
"""For small questions; what reads a source or starts a query has PySpark's own, longer ones."""
_LOOKS_AGAIN = 5
_LOOKS_AGAIN_MS = 100
_TOKEN_BITS = 32
_VERSION_AT = 76
_OURS = 8
"""The version of a UUID whose bits mean what its maker says (RFC 9562, 5.8)."""


def new_session_id(token: int) -> str:
    """An id that nobody else has, for the session of a query that runs under `token`; see `token_of`."""
    drawn = uuid4().int
    if not 0 < token < 1 << _TOKEN_BITS:  # no manager gives such a token out
        return str(UUID(int=drawn))
    rest = drawn & ((1 << 128 - _TOKEN_BITS) - 1) & ~(0xF << _VERSION_AT)
    return str(UUID(int=token << 128 - _TOKEN_BITS | _OURS << _VERSION_AT | rest))


def token_of(session_id: str) -> int | None:
    """The token that a session's id tells, None if it is not of `new_session_id`."""
    made = UUID(session_id)
    return made.int >> 128 - _TOKEN_BITS if made.version == _OURS else None


class ConnectionLostError(ConnectionError):
    """The server did not answer; its message has no word of the URL, which may carry a token."""


class SessionClosedError(Exception):
    """The server does not know the session any more."""


class Deadline(grpc.UnaryUnaryClientInterceptor):  # type: ignore[misc]  # gRPC ships no types
    """Lets small questions to the server take `seconds` at most; older clients of Spark's wait for ever."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        """Called by gRPC for each call with one answer."""
        if client_call_details.method.rpartition("/")[2] in _SMALL:
            client_call_details = client_call_details._replace(timeout=self.seconds)
        return continuation(client_call_details, request)


class LookAgain(RetryPolicy):
    """Asks on where the server lets go of whoever waits for an answer, and says nothing of what became of it.

    That is how it ends the calls of a session that somebody else closes meanwhile; asked again, it says so.
    Of whatever else goes wrong the caller hears at once: PySpark's own rule would try for ten minutes.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=_LOOKS_AGAIN, initial_backoff=_LOOKS_AGAIN_MS)

    def can_retry(self, exception: BaseException) -> bool:
        """Whether it is such an end."""
        return isinstance(exception, grpc.RpcError) and "[INVALID_CURSOR.DISCONNECTED]" in str(exception)


class Session(SparkSession):
    """One that ends when it is told to (`end_session`), and not when Python collects it.

    PySpark 4.1 closes it then, too, in whichever thread that happens to be, and waits for calls to the server
    to end; where that thread is just making a call, they wait for it, and for ever.
    """

    def __del__(self) -> None:
        """Nothing is left to be done."""


def open_session(url: str, session_id: str, deadline: Deadline | None = None) -> SparkSession:
    """The session of that id; the server makes it at the first call if there is none.

    Args:
        url: of the server, with what it lets us in by.
        session_id: a UUID.
        deadline: for small questions; `DEADLINE_S` without one.
    """
    builder = DefaultChannelBuilder(url)
    builder.add_interceptor(deadline or Deadline(DEADLINE_S))
    builder.set("session_id", session_id)
    if builder.userId is None:
        builder.set("user_id", USER)
    session = Session(builder)
    session.client.set_retry_policies([LookAgain()])
    return session


def end_session(session: SparkSession, *, release: bool = True) -> None:
    """Close the connection; before that have the server `release` the session, which ends its queries."""
    client = session.client
    if release:
        with contextlib.suppress(
            PySparkException, grpc.RpcError, ValueError
        ):  # it is closed, or out of reach
            client.release_session()
    if (on_exit := getattr(client, "_on_exit", None)) is not None:  # since PySpark 4.2
        atexit.unregister(on_exit)  # else every session of a worker's life is kept
    client.close()


@contextlib.contextmanager
def asking() -> Iterator[None]:
    """Turn what a call to the server raises into errors that say whose fault it is.

    Raises:
        ConnectionLostError: no answer.
        SessionClosedError: the session is gone.
    """
    try:
        yield
    except SparkConnectGrpcException as error:
        if type(error) is SparkConnectGrpcException:  # what the server says itself is of a class below
            raise ConnectionLostError(_reason(error)) from None
        if "[INVALID_HANDLE." in str(error):
            raise SessionClosedError(str(error)) from None
        raise
    except grpc.RpcError as error:
        raise ConnectionLostError(_reason(error)) from None
    except ValueError as error:
        if "closed channel" in str(error):
            raise ConnectionLostError("the connection is closed") from None
        raise


def _reason(error: Exception) -> str:
    """The status in which a call ended, and what gRPC says of it."""
    call = error if isinstance(error, grpc.RpcError) else error.__cause__ or error.__context__
    if isinstance(call, grpc.Call):
        return f"{call.code().name}: {call.details()}".partition("\n")[0]
    return "no answer"
