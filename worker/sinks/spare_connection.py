"""A connection to a sink's PostgreSQL that was made before it was known for whom."""

from __future__ import annotations

import os
import socket
import threading
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy import Engine

ANSWER_S: Final = 5.0
"""How long a server may be silent on it, in seconds, until another connection is made in its place."""


class SpareConnection:
    """The one of an engine of nobody's, for another engine (`worker.sinks.base.Connected`)."""

    def __init__(self, engine: Engine) -> None:
        """`engine` is connected, and nobody else's."""
        self._engine = engine
        borrowed = engine.raw_connection()
        self._connection: Any = borrowed.driver_connection
        borrowed.detach()

    def take(self, session_name: str) -> Any | None:
        """The driver's own connection, once, working from now on under that name; None if it is gone.

        Args:
            session_name: by which a newer owner finds it, so that it has it before anything is done in it.
        """
        connection, self._connection = self._connection, None
        if connection is None:
            return None
        giving_up = threading.Timer(ANSWER_S, _hang_up, [connection])
        giving_up.daemon = True
        giving_up.start()
        try:
            connection.execute("SELECT set_config('application_name', %s, false)", (session_name,))
            connection.commit()
        except Exception:  # noqa: BLE001 - whatever is wrong with it, another one is made, which says so
            _close(connection)
            return None
        finally:
            giving_up.cancel()
            self._engine.dispose()
        return connection

    def close(self) -> None:
        """Close it, unless it was taken."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _close(connection)
        self._engine.dispose()


def _hang_up(connection: Any) -> None:
    """Whoever waits for the server hears that it is gone: one behind a network that is cut never says so."""
    with suppress(Exception), closing(socket.socket(fileno=os.dup(connection.fileno()))) as line:
        line.shutdown(socket.SHUT_RDWR)


def _close(connection: Any) -> None:
    with suppress(Exception):
        connection.close()
