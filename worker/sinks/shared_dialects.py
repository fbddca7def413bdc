"""What engines for one PostgreSQL have in common: SQLAlchemy's dialect, and statements that are compiled.

An engine of `sqlalchemy.create_engine` has both to itself: it asks the server anew what it is, and compiles
anew what it asks about a table, which is most of the processor time that a query's start spends on its sink.
Connections stay each engine's own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeAlias

import sqlalchemy as sa
from sqlalchemy.pool import QueuePool
from sqlalchemy.util import LRUCache

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlalchemy import URL, Connection, Dialect, Engine

    There: TypeAlias = Callable[[], Any] | None

DATABASES = 32
"""How many are remembered, by their whole URLs; those go first that nobody has asked for lately."""
STATEMENTS = 200
"""How many compiled ones of a database are kept, up to half as many again while some come; a sink has 25."""


class SharedDialect:
    """The dialect of one database.

    It is initialised by the first of its connections that gets as far, and again by the first one to another
    kind of server. What else it learns then may be old: its `default_schema_name` is, once somebody changes
    the role's `search_path`. Nothing here goes by that, nor do SQLAlchemy's questions about tables.
    """

    def __init__(self, dialect: Dialect) -> None:
        """`dialect` has met no server yet."""
        self.dialect = dialect
        self.statements: LRUCache[Any, Any] = LRUCache(STATEMENTS)
        self._server: object = None

    def engine(
        self, url: URL, connect_args: Mapping[str, Any], disposed: Callable[[Engine], None], there: There
    ) -> Engine:
        """One with connections of its own; it connects when it is first used.

        Args:
            url: the database's.
            connect_args: what the driver is told besides.
            disposed: is called whenever the engine has closed its connections.
            there: is asked for each connection first, for it may be there already.

        Raises:
            ValueError, TypeError: the dialect can make nothing of the URL.
        """
        args, from_url = self.dialect.create_connect_args(url)
        told = {**from_url, **connect_args}

        def connection() -> Any:
            found = None if there is None else there()
            return self.dialect.connect(*args, **told) if found is None else found

        pool = QueuePool(connection, pool_size=1, pre_ping=True, dialect=self.dialect)
        if (greet := self.dialect.on_connect_url(url)) is not None:
            sa.event.listen(pool, "connect", lambda connection, _record: greet(connection))
        # `create_engine` cannot be given a dialect that is there.
        engine = sa.Engine(
            pool,
            self.dialect,
            url,
            hide_parameters=True,
            execution_options={"compiled_cache": self.statements},
        )
        sa.event.listen(engine, "engine_connect", self._meet)
        sa.event.listen(engine, "engine_disposed", disposed)
        return engine

    def _meet(self, connection: Connection) -> None:
        """Initialise the dialect, unless it was by such a server.

        No lock: whoever comes before the first has done it does it, too, and learns the same. It is done when
        all of it is: another connection asks again for what one has learned by half.
        """
        try:
            server = _server_of(connection)
            if server != self._server:
                self._learn(connection)
                self._server = server
        except BaseException:
            connection.invalidate()
            raise

    def _learn(self, connection: Connection) -> None:
        self.dialect.initialize(connection)
        connection.rollback()
        if self._server is not None:
            self.statements.clear()
            forget_questions(self.dialect)


class SharedDialects:
    """Those of the databases that this process has to do with."""

    def __init__(self, make: Callable[[URL], Dialect], most: int = DATABASES) -> None:
        """No database is known yet.

        Args:
            make: a new dialect for a URL; connects to nothing.
            most: how many databases are remembered.
        """
        self._make = make
        self._most = most
        self._known: OrderedDict[URL, SharedDialect] = OrderedDict()
        self._lock = threading.Lock()

    def engine(self, url: URL, connect_args: Mapping[str, Any], there: There = None) -> Engine:
        """A new engine with the dialect of its database, as of `SharedDialect.engine`.

        The whole URL is the key, password and options with it: other options may be another `search_path`.
        """
        shared = self._of(url)

        def disposed(_engine: Engine) -> None:
            if self._known.get(url) is not shared:
                forget_questions(shared.dialect)

        return shared.engine(url, connect_args, disposed, there)

    def _of(self, url: URL) -> SharedDialect:
        with self._lock:
            if (shared := self._known.get(url)) is not None:
                self._known.move_to_end(url)
                return shared
        made = SharedDialect(self._make(url))
        with self._lock:
            shared = self._known.setdefault(url, made)
            gone = [self._known.popitem(last=False)[1] for _ in range(len(self._known) - self._most)]
        for each in gone:
            forget_questions(each.dialect)
        return shared


def forget_questions(dialect: Dialect) -> None:
    """Empty SQLAlchemy's caches of what it asks PostgreSQL about tables.

    Each keeps 128 of them, with the dialects that have asked: a worker whose tasks come and go would grow by
    0.2 MB with each dialect. They are of the class; other dialects only make their questions again.
    """
    for kind in type(dialect).__mro__:
        for member in vars(kind).values():
            if (clear := getattr(member, "cache_clear", None)) is not None:
                clear()


def _server_of(connection: Connection) -> object:
    """What SQLAlchemy words its statements by; the server has said so when it let the connection in."""
    info: Any = connection.connection.driver_connection.info  # type: ignore[union-attr]  # psycopg's
    return info.server_version, info.parameter_status("standard_conforming_strings")
