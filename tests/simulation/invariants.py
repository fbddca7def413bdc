"""The invariants of architecture §5, looked at after every step; what breaks one is a `InvariantError`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from manager.core.group import Group
from manager.core.stored_rows import GroupRow, MemberRow, OffsetRow, OwnershipRow, TaskRow
from manager.core.tasks import lost_workers
from manager.core.transfer_commands import CancelTransfer, TransferRows
from protocol.messages.base import decode_opaque
from protocol.messages.events import EventType
from protocol.messages.membership import JoinResponse, SyncResponse
from protocol.messages.offsets import CommitOffsetsRequest, OffsetErrorsResponse
from protocol.messages.ownership import ClaimResponse
from protocol.states import GroupState, TaskState, TransferStep
from tests.fakes.rows import rows_of
from tests.simulation.store import in_order
from tests.simulation.violations import hold
from tests.simulation.whereabouts import Place, Whereabouts, home_of

if TYPE_CHECKING:
    import msgspec

    from manager.core.stored_rows import Change, Row
    from manager.settings import GroupSettings
    from protocol.messages.events import Event
    from protocol.messages.tasks import TaskHome, TaskReset
    from tests.simulation.manager import Asked
    from tests.simulation.runs import Run
    from tests.simulation.sink import Query
    from tests.simulation.store import Rows

Generation = tuple[str, int, int]
"""A group, how many of its name were deleted before it, and the number: each group counts from 1."""


class Watch:
    """Sees every row and every answer of all managers, and remembers what may never be taken back."""

    def __init__(self) -> None:
        self.rebalances = self.resets = 0
        self._completed: set[Generation] = set()
        self._rosters: dict[Generation, tuple[str, ...]] = {}
        self._grants: dict[tuple[TaskHome, int], str] = {}
        self._resets: dict[tuple[str, str, int], TaskReset | None] = {}
        self._offsets: set[tuple[str, str, bytes]] = set()
        self._generations: set[Generation] = set()
        self._fences: dict[TaskHome, int] = {}
        self._runs: dict[TaskHome, Run] = {}
        self.completed = 0
        self.whereabouts = Whereabouts()

    # What is stored.

    def check_stored(self, rows: Rows, change: Change) -> None:
        """Invariant 1: generations grow by one, tokens and revisions only grow, and none is used twice."""
        if isinstance(change, OwnershipRow):
            before = rows.get((OwnershipRow, change.key))
            self._check_token(before, change)
            if home_of(change) == self.whereabouts.home(Place(*change.key)):
                self._check_settled(before, change)
                self._check_reset(before, change)
                self._check_completed(before, change, rows)
        elif isinstance(change, GroupRow):
            self._check_generation(rows.get((GroupRow, change.key)), change, rows)
        elif isinstance(change, OffsetRow):
            self._check_offset(rows.get((OffsetRow, change.key)), change)
        self.whereabouts.stored(change)

    def _check_generation(self, before: Any, row: GroupRow, rows: Rows) -> None:
        generation, revision = (before.generation, before.tasks_revision) if before else (0, 0)
        hold("generations grow by one", row.generation - generation in {0, 1}, (before, row))
        hold("revisions only grow", row.tasks_revision >= revision, (before, row))
        self._generations.add((row.group, rows.deleted, row.generation))
        self.rebalances += row.generation > generation

    def _check_token(self, before: Any, row: OwnershipRow) -> None:
        token, owner = (before.token, before.owner) if before else (0, None)
        hold("tokens only grow", row.token >= token, (before, row))
        changed_hands = row.owner not in {None, owner}
        hold("a new owner has a new token", row.token > token or not changed_hands, (before, row))
        since = row.token >= row.since_ms // 1000
        hold("a token is no lower than the second it is issued in", since or not changed_hands, (before, row))

    def _check_settled(self, before: Any, row: OwnershipRow) -> None:
        """What a transfer has packed is settled where it goes on."""
        if before is not None and before.unsettled and not row.unsettled:
            raised = self._fences.get(home_of(row), 0) >= before.token
            packed = self.whereabouts.is_packed_unsettled(Place(*row.key))
            hold("what is settled has a fence to show for it", raised or packed, (before, row))

    def _check_reset(self, before: Any, row: OwnershipRow) -> None:
        was_reset = _number(row) != _number(before)
        hold("numbers of resets only grow", _number(row) >= _number(before), (before, row))
        hold("a reset fences all before it", not was_reset or _is_fenced(before, row), (before, row))
        self.resets += was_reset

    def _check_completed(self, before: Any, row: OwnershipRow, rows: Rows) -> None:
        """A run that somebody was promised is not taken for done because the one before it is."""
        if row.state is not TaskState.COMPLETED or (before is not None and before.state is row.state):
            return
        task: Any = rows[TaskRow, row.key]
        run = self._runs.get(home_of(row))
        is_done = run is not None and (run.token, run.version, run.restarts) == (
            row.token,
            task.definition_version,
            task.restart_count,
        )
        hold("a completed task has done what was wanted of it last", is_done, (row, task, run))
        self.completed += 1

    def _check_offset(self, before: Any, row: OffsetRow) -> None:
        fenced = before is None or _generation(row.offset) >= _generation(before.offset)
        hold("an old generation commits no offset", fenced, (before, row))
        self._offsets.add((*row.key, bytes(row.offset)))

    def check_told(self, event: Event, rows: Rows) -> None:
        """Every completed rebalance is told once."""
        if event.type == EventType.REBALANCE_COMPLETED:
            key = (str(event.group), rows.deleted, int(event.generation_id or 0))
            hold("a rebalance is told once", key not in self._completed, event)
            self._completed.add(key)

    # What leaves.

    def check_answer(self, asked: Asked, outcome: Any, rows: Rows) -> None:
        """Invariants 1 and 2 from outside: nothing is told that is not durable, nothing to two."""
        group, request = asked.group, asked.request
        match outcome:
            case JoinResponse():
                self._check_joined((group, asked.deleted, outcome.generation_id), outcome)
            case SyncResponse() if asked.deleted == rows.deleted:
                self._check_synced(group, request, outcome, rows)
            case ClaimResponse():
                self._check_granted(group, outcome, rows)
            case TransferRows() if isinstance(request, CancelTransfer):
                steps = {row.step for row in outcome.rows if row.leaves}
                hold("who is told that tasks stay can rely on it", steps <= {TransferStep.CANCELLED}, outcome)
            case OffsetErrorsResponse() if isinstance(request, CommitOffsetsRequest):
                self._check_committed(group, request, outcome)

    def _check_joined(self, told: Generation, joined: JoinResponse) -> None:
        hold("a generation is durable before it is told", told in self._generations, joined)
        if joined.members and not joined.skip_assignment:
            roster = tuple(member.instance_id or member.member_id for member in joined.members)
            first = self._rosters.setdefault(told, roster)
            hold("a generation is told once", first == roster, (told, first, roster))

    def _check_synced(self, group: str, request: Any, synced: SyncResponse, rows: Rows) -> None:
        header = _header(group, rows)
        if header is None or header.generation != request.generation_id:
            return
        told = (group, rows.deleted, header.generation) in self._completed
        hold("a completed rebalance is told before its assignment is", told, request)
        row = rows.get((MemberRow, (group, request.member_id)))
        if header.state is GroupState.STABLE and isinstance(row, MemberRow):
            same = bytes(row.assignment) == bytes(synced.assignment)
            hold("an assignment is durable before it is told", same, synced)

    def _check_granted(self, group: str, claimed: ClaimResponse, rows: Rows) -> None:
        for grant in claimed.granted:
            row = rows.get((OwnershipRow, (group, grant.task)))
            durable = isinstance(row, OwnershipRow) and row.token >= grant.token
            hold("a token is durable before it is told", durable, grant)
            self.whereabouts.check_grant(group, grant)
            first = self._resets.setdefault((group, grant.task, grant.token), grant.reset)
            hold("a token stands for one checkpoint", first == grant.reset, (grant, first))

    def _check_committed(
        self, group: str, request: CommitOffsetsRequest, outcome: OffsetErrorsResponse
    ) -> None:
        for key, sent in request.offsets.items():
            durable = outcome.offsets[key] != "NONE" or (group, key, bytes(sent.offset)) in self._offsets
            hold("an offset is durable before it is told", durable, sent)

    def raised(self, home: TaskHome, token: int) -> None:
        """A sink refuses whoever has a lower token."""
        self._fences[home] = token

    def check_writer(self, query: Query, who: str) -> None:
        """Invariant 2: a token is one worker's."""
        first = self._grants.setdefault((query.home, query.token), who)
        hold("a token is one worker's", first == who, (query, first, who))
        self.whereabouts.check_writer(query, who)

    def note_completed(self, home: TaskHome, run: Run) -> None:
        """A query has come to its end."""
        self._runs[home] = run

    def check_alone(self, query: Query, runners: list[str]) -> None:
        """Invariant 2 where there is no fence: one worker at a time runs the task."""
        hold("a task without a fence is run by one worker", len(runners) == 1, (query, runners))

    # What is in memory.

    def check_memory(self, live: Group | None, rows: Rows) -> None:
        """Invariant 4, the quick way: the group's durable part is exactly what its turns have put."""
        known = [task for task in rows.carried if live is None or not live.tasks.history.has_carried(task)]
        hold("a history that came along stays", not known, known)
        if live is not None and set(map(id, rows_of(live))) == set(map(id, rows.values())):
            return
        durable = {(type(row), row.key): row for row in rows_of(live)} if live is not None else {}
        for key, row in durable.items():
            if rows.get(key) is not row:
                hold("memory is what is stored", key[0] is GroupRow and row == GroupRow(group=key[1][0]), row)
        missing = [row for key, row in rows.items() if key not in durable]
        hold("memory is what is stored", not missing, missing)

    def check_reload(self, live: Group, settings: GroupSettings, rows: Rows) -> None:
        """Invariant 4, in full: a group built anew from its rows is the group that lives."""
        again = Group(live.name, settings)
        for row in in_order(rows):
            again.apply(row)
        hold("a reloaded group is the live one", _by_key(again) == _by_key(live), live.history_text)
        hold("a reloaded herd is the live one", again.tasks.owned == live.tasks.owned, live.history_text)
        kept = {row.lost_by for row in live.tasks.ownership.values() if row.lost_by is not None}
        endless = [worker for worker in kept if (lost_workers.KEPT, worker) not in live.timers]
        hold("what is kept for a lost worker has a deadline", not endless, (endless, live.history_text()))


def _by_key(group: Group) -> dict[tuple[type[Row], tuple[Any, ...]], Row]:
    """The durable part; most rows of a reloaded group are the very objects, and compared as fast as that."""
    return {(type(row), row.key): row for row in rows_of(group)}


def _header(group: str, rows: Rows) -> GroupRow | None:
    row = rows.get((GroupRow, (group,)))
    return row if isinstance(row, GroupRow) else None


def _number(row: Any) -> int:
    return row.reset.number if row is not None and row.reset is not None else 0


def _is_fenced(before: Any, row: OwnershipRow) -> bool:
    return row.owner is None and row.token > before.token


def _generation(offset: msgspec.Raw) -> int:
    """Readers commit pairs of a generation and a number."""
    return int(decode_opaque(offset)[0])
