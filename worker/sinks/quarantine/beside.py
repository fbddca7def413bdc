"""The quarantine beside the rows of a sink `sql`: a table that moves in the same transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from definition.tables import TableName, read_table_name
from worker.sinks.encoding import Encoder
from worker.sinks.parts import chunked
from worker.sinks.quarantine.rows import FIELDS, KEY, rows_of
from worker.sinks.table import describe_table, ensure_table, insert_statement, names_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sqlalchemy import Connection, Engine

    from worker.sinks.aside import Aside, Beside
    from worker.sinks.fence import Mark, Owner


class QuarantineTable:
    """One task's view of it; several tasks may have one table."""

    def __init__(
        self,
        engine: Engine,
        owner: Owner,
        beside: Beside,
        schema: str | None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            engine: the database.
            owner: whose rows are put aside.
            beside: where to, and how many may be.
            schema: of the rows' own table; where it is too, unless its name has another.
            clock: the time, in seconds since 1970.
        """
        name = read_table_name(beside.table)
        self.limits = beside.limits
        self._owner = owner
        self._clock = clock
        self._table = describe_table(TableName(name.schema or schema, name.table), FIELDS, KEY)
        self._statement = insert_statement(self._table, engine.dialect)
        names, kinds = zip(*((field.name, str(field.type)) for field in FIELDS), strict=True)
        self._encoder = Encoder(engine.url.drivername, names, kinds)

    @property
    def names(self) -> set[str]:
        """Those in its statements."""
        return names_of(self._table)

    def ensure(self, connection: Connection) -> None:
        """Make it, unless it is there.

        Raises:
            SchemaError: there is a table of that name with other columns.
        """
        ensure_table(connection, self._table)

    def put(self, connection: Connection, aside: Sequence[Aside], mark: Mark) -> None:
        """Put rows aside, with the batch that they are of."""
        rows = rows_of(aside, self._owner, mark, int(self._clock() * 1_000_000))
        for chunk in chunked(iter(self._encoder.chunk(rows))):
            connection.exec_driver_sql(self._statement, chunk)
