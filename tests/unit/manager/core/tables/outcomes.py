"""What came of a request, in a cell: the answer, the next state if it is new, rows, events, other answers.

    NONE  > PreparingRebalance  GMh  !worker.lost  2x REBALANCE_IN_PROGRESS

reads: answered NONE; the group is in PreparingRebalance now; group and member rows were put, a line of the
history dropped; the outside is told of a lost worker; two requests that had waited were answered
REBALANCE_IN_PROGRESS. `parked` is no answer yet.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from manager.core.stored_rows import (
    CarriedHistoryRow,
    Dropped,
    GroupRow,
    MemberRow,
    OffsetRow,
    OwnershipRow,
    RebalanceRow,
    Row,
    TaskRow,
    TransferRow,
)
from protocol.errors import Failure
from protocol.messages.events import Event
from tests.unit.manager.core.bench import Ask

if TYPE_CHECKING:
    from manager.core.turn import Turn
    from protocol.messages.base import Request
    from tests.unit.manager.core.tables.states import Scene

LETTERS = {
    GroupRow: "G",
    MemberRow: "M",
    OffsetRow: "O",
    TaskRow: "T",
    OwnershipRow: "W",
    RebalanceRow: "H",
    TransferRow: "X",
    CarriedHistoryRow: "C",
}


def outcome(scene: Scene, request: Request) -> str:
    """Put `request` to the group, and say what came of it."""
    bench = scene.bench
    before = _state(scene)
    asks = [ask for ask in scene.parked if ask.waits]
    ask = Ask()
    turn = bench.coordinator.handle(bench.name, request, ask, bench.instant)
    bench._take(turn)
    after = _state(scene)
    parts = [_answer(ask), f"> {after}" if after != before else "", _rows(turn), _events(turn), _others(asks)]
    return "  ".join(part for part in parts if part)


def _state(scene: Scene) -> str:
    group = scene.bench.coordinator.group(scene.bench.name)
    return group.state.value if group is not None else "Empty"


def _answer(ask: Ask) -> str:
    if ask.waits:
        return "parked"
    answer = ask.answer
    if isinstance(answer, Failure):
        return answer.code.name
    return ", ".join(str(error) for error in _entries(answer)) or "NONE"


def _entries(answer: Any) -> list[str]:
    """The codes inside an answer that has one an entry."""
    if hasattr(answer, "granted"):
        return (
            [f"granted {grant.token}" for grant in answer.granted]
            + ["pending" for _ in answer.pending]
            + [str(refused.error) for refused in answer.refused]
        )
    entries = getattr(answer, "members", None)
    if entries and hasattr(entries[0], "error"):
        return [str(entry.error) for entry in entries]
    tasks = getattr(answer, "tasks", None)
    if isinstance(tasks, dict):
        return [str(error) for error in tasks.values()]
    return []


def _rows(turn: Turn) -> str:
    letters = {LETTERS[type(change)] for change in turn.changes if isinstance(change, Row)}
    dropped = {LETTERS[change.kind].lower() for change in turn.changes if isinstance(change, Dropped)}
    return "".join(sorted(letters)) + "".join(sorted(dropped))


def _events(turn: Turn) -> str:
    return " ".join(f"!{change.type}" for change in turn.changes if isinstance(change, Event))


def _others(asks: list[Ask]) -> str:
    answered = Counter(ask.error for ask in asks if not ask.waits)
    return ", ".join(f"{count}x {code}" for code, count in sorted(answered.items()))
