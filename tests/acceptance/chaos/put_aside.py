"""Sinks with a place for bad rows: what is in both, and what is in neither, against what was fed."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import PrimitiveType

from tests.acceptance.chaos.bad_rows import ALLOWED, CONSTRAINT, Kind, read_aside, rules
from tests.acceptance.chaos.balance import Balance, of_places
from tests.acceptance.chaos.delta_lake import DeltaLake
from tests.acceptance.chaos.plan import IN_QUARANTINE, Moment
from tests.acceptance.chaos.sinks import Sinks
from tests.acceptance.chaos.sql_sinks import SqlSinks

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from tests.acceptance.chaos.bad_rows import Aside, Bad
    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.lake import CommitHold, Work

_COLUMNS: Final = Schema(
    [
        Field("id", PrimitiveType("long")),
        Field("key", PrimitiveType("string")),
        Field("value", PrimitiveType("double")),
    ]
)
PUT_ASIDE: Final = "put aside"
DROPPED: Final = "dropped"
_SQL_COLUMNS: Final = "id BIGINT, key TEXT, value FLOAT"
_WRITE_ANEW: Final = "UPDATE sparkherd_quarantine SET raw = :whole WHERE task = :task AND raw = :line"
_ASIDE = "SELECT reason, name, form, raw FROM sparkherd_quarantine WHERE task = :task"


class Told(NamedTuple):
    """How many rows a task says that it has left out since its latest worker took it."""

    dropped: int
    quarantined: int


class PutsAside(Sinks):
    """Over other sinks; rows are put aside one by one, so all flows append."""

    def append_all(self) -> None:
        """What is counted by key is no row any more that could be put aside."""
        for flow in self.flows:
            flow.mode = "append"

    @abstractmethod
    def aside(self, flow: Flow) -> Counter[Aside]:
        """How often each row is in the flow's quarantine."""

    @abstractmethod
    def lift(self, flow: Flow) -> None:
        """Take away the constraint of the flow's table."""

    @abstractmethod
    def write_anew(self, flow: Flow, bad: Sequence[Bad]) -> None:
        """Replace these rows in the flow's quarantine by what they should have been."""

    def has_all_of(self, flow: Flow) -> bool:
        """In whichever place: a row that is in the wrong one is no reason to wait for it."""
        return self.arrived(flow) + len(self.aside(flow)) >= len(flow.due) + len(flow.due_aside)

    def due(self, flow: Flow) -> dict[str, int]:
        """By place."""
        return {self._at(flow, place): things.total() for place, things in _due(flow).items()}

    def balances(self, flow: Flow) -> dict[str, Balance]:
        """By place; what was dropped is right if it is in none."""
        found: dict[str, Counter[tuple[int, Hashable]]] = {
            "": Counter({(number, key): count for (number, key), count in self.rows(flow).items()}),
            PUT_ASIDE: Counter({(row.number, row[1:]): count for row, count in self.aside(flow).items()}),
        }
        seen = {number for things in found.values() for number, _ in things}
        due = _due(flow)
        found[DROPPED] = Counter({thing: n for thing, n in due[DROPPED].items() if thing[0] not in seen})
        return {self._at(flow, place): balance for place, balance in of_places(due, found).items()}

    def fault_of_told(self, flow: Flow, told: Told) -> str | None:
        """What a task's counts say that cannot be; they are lower bounds, for each owner begins anew."""
        dropped = sum(bad.aside is None for bad in flow.due_bad)
        most = Told(dropped, len(flow.due_bad) - dropped)
        if told.dropped <= most.dropped and told.quarantined <= most.quarantined:
            return None
        return f"{flow.name}: told {told}, of {most}"

    def bad_rows(self) -> str:
        """Those that were fed, for people."""
        kinds = Counter(bad.kind for flow in self.flows for bad in flow.bad.values())
        rows = sum(len(flow.fed) for flow in self.flows)
        told = ", ".join(f"{kind.name.lower()} {kinds[kind]}" for kind in reversed(Kind))
        return f"of {rows:,} rows that were fed: {told}"

    @staticmethod
    def _at(flow: Flow, place: str) -> str:
        return f"{flow.database}, {place}" if place else flow.database


class SiftedSql(PutsAside, SqlSinks):
    """The quarantine is beside the rows, whose tables refuse some."""

    def __init__(self, folder: Path, postgres: str, *, fenced: bool) -> None:
        """The tables are made here, with their constraints."""
        super().__init__(folder, postgres, fenced=fenced)
        self.append_all()
        for flow in self.flows:
            constraint = f"CONSTRAINT {ALLOWED} CHECK ({CONSTRAINT})"
            self.execute(flow, f"CREATE TABLE {flow.target} ({_SQL_COLUMNS}, {constraint})")

    def rules(self, flow: Flow) -> dict[str, Any]:
        """The default is beside."""
        return rules(flow)

    def aside(self, flow: Flow) -> Counter[Aside]:
        """Of one table in each database."""
        return Counter(
            read_aside(flow, reason, name, form, bytes(raw))
            for reason, name, form, raw in self.asked(flow, _ASIDE, task=flow.name)
        )

    def lift(self, flow: Flow) -> None:
        """In one transaction; SQLite knows no way but to make the table anew."""
        name, former = flow.target, f"{flow.target}_former"
        anew = (
            "BEGIN IMMEDIATE",
            f"ALTER TABLE {name} RENAME TO {former}",
            f"CREATE TABLE {name} ({_SQL_COLUMNS})",
            f"INSERT INTO {name} SELECT * FROM {former}",
            f"DROP TABLE {former}",
        )
        is_sqlite = flow.database == "sqlite"
        self.execute(flow, *(anew if is_sqlite else (f"ALTER TABLE {name} DROP CONSTRAINT {ALLOWED}",)))

    def write_anew(self, flow: Flow, bad: Sequence[Bad]) -> None:
        """As docs/tasks.md has it."""
        for each in bad:
            self.execute(flow, _WRITE_ANEW, task=flow.name, line=each.line, whole=each.whole)


class SiftedDelta(PutsAside, DeltaLake):
    """The quarantine is elsewhere: a table of Delta's for each flow, beside that of its rows."""

    def __init__(self, folder: Path, postgres: str, *, fenced: bool) -> None:
        """Only what has a fence can be given rows aside; the tables are made here, with their constraints."""
        assert fenced
        super().__init__(folder, postgres, fenced=fenced)
        self.append_all()
        for flow in self.flows:
            table = DeltaTable.create(str(self.path(flow)), _COLUMNS)
            table.alter.add_constraint({ALLOWED: CONSTRAINT})

    def rules(self, flow: Flow) -> dict[str, Any]:
        """To another path."""
        place = {"format": self.format, "options": {"path": str(self._aside(flow))}}
        return {**rules(flow), "quarantine": place}

    def aside(self, flow: Flow) -> Counter[Aside]:
        """By another engine."""
        path = str(self._aside(flow))
        try:
            table = DeltaTable(path)
        except TableNotFoundError:
            return Counter()
        found: Counter[Aside] = self.newest(
            path,
            (table.version(), lambda: table.to_pyarrow_table(columns=["reason", "name", "form", "raw"])),
            lambda rows: Counter(read_aside(flow, **row) for row in rows),
        )
        return found

    def lift(self, flow: Flow) -> None:
        """By another engine."""
        DeltaTable(str(self.path(flow))).alter.drop_constraint(ALLOWED)

    def write_anew(self, flow: Flow, bad: Sequence[Bad]) -> None:
        """In one commit, by another engine."""
        lines = {"line": [each.line for each in bad], "whole": [each.whole for each in bad]}
        merging = DeltaTable(str(self._aside(flow))).merge(
            pa.table(lines), "aside.raw = anew.line", source_alias="anew", target_alias="aside"
        )
        merging.when_matched_update({"raw": "anew.whole"}).execute()

    def empty(self, flow: Flow) -> None:
        """Both: what is read again is put aside again, too."""
        super().empty(flow)
        DeltaTable(str(self._aside(flow))).delete()

    def hold(self, worker: str, flow: Flow, moment: Moment, work: Work) -> CommitHold:
        """Some moments are those of the quarantine's commit."""
        if moment in IN_QUARANTINE:
            return self.hold_of(worker, self._aside(flow).name, IN_QUARANTINE[moment], work)
        return super().hold(worker, flow, moment, work)

    def _aside(self, flow: Flow) -> Path:
        return self.path(flow).with_name(f"{flow.target}_aside")


def _due(flow: Flow) -> Mapping[str, Counter[tuple[int, Hashable]]]:
    """Each row that was fed, at the one place where it has to be."""
    asides = [bad.aside for bad in flow.due_aside]
    return {
        "": Counter(flow.due),
        PUT_ASIDE: Counter((aside.number, aside[1:]) for aside in asides if aside is not None),
        DROPPED: Counter((bad.number, bad.kind) for bad in flow.due_bad if bad.aside is None),
    }
