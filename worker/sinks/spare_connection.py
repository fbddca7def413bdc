"""A connection to a sink's PostgreSQL that was made before it was known for whom."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import Engine


class SpareConnection:
    """The one of an engine of nobody's, for another engine (`worker.sinks.base.Connected`)."""

    def __init__(self, engine: Engine) -> None:
        """`engine` is connected, and nobody else's."""
        self._engine = engine
        self._is_there = True

    def take(self, session_name: str) -> Any | None:
        """The driver's own connection, once, working from now on under that name; None if it is gone.

        Args:
            session_name: by which a newer owner finds it, so that it has it before anything is done in it.
        """
        if not self._is_there:
            return None
        self._is_there = False
        connection: Any = None
        try:
            borrowed = self._engine.raw_connection()  # which sees whether it is alive
            connection = borrowed.driver_connection
            borrowed.detach()
            connection.execute("SELECT set_config('application_name', %s, false)", (session_name,))
            connection.commit()
        except Exception:  # noqa: BLE001 - whatever is wrong with it, another one is made, which says so
            with suppress(Exception):
                connection.close()
            return None
        finally:
            self._engine.dispose()
        return connection

    def close(self) -> None:
        """Close it, unless it was taken."""
        self._is_there = False
        self._engine.dispose()
