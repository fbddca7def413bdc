"""Whether a database refuses rows for what they are, and not for what it is itself."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy.exc import DBAPIError

from worker.sinks.bisection import RowsRefusedError
from worker.sinks.errors import SinkError
from worker.sinks.public_words import is_of_users, public, public_of_others

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from sqlalchemy import Connection, NestedTransaction

_OF_ROWS: Final = ("22", "23", "44")
"""Classes of SQLSTATE: a value that does not fit, a constraint, and the condition of a view."""
_MORE: Final = {"P0001", "54000"}
"""PostgreSQL's RAISE EXCEPTION, and a row that is too large for an index."""
_UNDONE: Final = (
    "the database has undone the whole batch for one of its rows, as RAISE(ROLLBACK) of a trigger and ON"
    " CONFLICT ROLLBACK of a constraint have it: the others cannot be written without that one, as they can"
    " with ABORT in place of ROLLBACK; it says {why}"
)


def _is_news(record: logging.LogRecord) -> bool:
    """Whether it is no second error that psycopg met while it raised the first, as with each half refused."""
    return not str(record.msg).startswith("error ignored terminating")


logging.getLogger("psycopg").addFilter(_is_news)


@contextmanager
def refusable(connection: Connection) -> Iterator[None]:
    """Part of a transaction, which goes on without it where the database refuses rows.

    Raises:
        RowsRefusedError: it does; nothing of this part is left.
        SinkError: it has undone the whole transaction with it.
    """
    savepoint = _savepoint(connection)
    try:
        yield
        savepoint.commit()
    except (DBAPIError, connection.dialect.loaded_dbapi.Error) as error:
        if (why := refusal_of(error)) is None:
            raise
        if _is_undone(connection):
            raise SinkError(_UNDONE.format(why=public_words(error))) from error
        savepoint.rollback()
        raise RowsRefusedError(why, public_words(error)) from error


class SqliteSavepoint:
    """Past SQLAlchemy, whose own costs as much as putting fifty rows: there is one for each, in a search."""

    def __init__(self, connection: Connection) -> None:
        self._run: Any = driver_of(connection).execute
        self._run("SAVEPOINT sparkherd")

    def commit(self) -> None:
        """What came since stays."""
        self._run("RELEASE sparkherd")

    def rollback(self) -> None:
        """What came since is gone."""
        self._run("ROLLBACK TO sparkherd")
        self._run("RELEASE sparkherd")


def driver_of(connection: Connection) -> Any:
    """What the driver has to run statements by."""
    return connection.connection.driver_connection


def _savepoint(connection: Connection) -> SqliteSavepoint | NestedTransaction:
    is_sqlite = connection.dialect.name == "sqlite"
    return SqliteSavepoint(connection) if is_sqlite else connection.begin_nested()


def _is_undone(connection: Connection) -> bool:
    """Whether there is no transaction any more, as SQLite alone can have it."""
    return connection.dialect.name == "sqlite" and not driver_of(connection).in_transaction


def check_at_once(connection: Connection) -> None:
    """Have the database look at all constraints with each statement, and at none at the end only."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")


def public_words(error: Exception, names: Collection[str] | None = None) -> str:
    """What anybody may read of an error, in one line: where it may be about rows, no value of them.

    `names` are those that may be shown of what was met while rows were written; None if none were.
    """
    raised = _raised(error)
    if refusal_of(error) is not None or is_of_users(raised):
        return public(raised)
    return _first_line(raised) if names is None else public_of_others(raised, names)


def refusal_of(error: Exception) -> str | None:
    """What the database has against rows, in one line; None if it is not about them."""
    raised = _raised(error)
    state = getattr(raised, "sqlstate", None)
    if state is not None:
        is_of_rows = state.startswith(_OF_ROWS) or state in _MORE
    else:
        is_of_rows = type(raised).__name__ in {"IntegrityError", "DataError"}
    return _first_line(raised) if is_of_rows else None


def _raised(error: Exception) -> Any:
    """What the driver has raised."""
    return error.orig if isinstance(error, DBAPIError) else error


def _first_line(raised: Any) -> str:
    return str(raised).strip().partition("\n")[0]
