"""What the runtime tells of its turns, to be counted and to be logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from manager.metrics import log_lines
from manager.metrics.facts import Facts
from manager.metrics.meter import Meter
from protocol.messages.membership import HeartbeatRequest

if TYPE_CHECKING:
    from manager.core.turn import Turn
    from manager.metrics.facts import Fact
    from protocol.messages.base import Request


class TurnObserver:
    """Looks at every turn once."""

    def __init__(self) -> None:
        self.meter = Meter()
        self._facts = Facts()

    def turned(self, asked: type[Request] | None, turn: Turn) -> None:
        """A request was carried out; None for `asked` says that a deadline was, or a connection closed."""
        if asked is HeartbeatRequest:
            return  # there is nothing to be seen in one, and there are very many
        if turn.changes:
            self._know(turn)
        self._tell(self._facts.read(asked, turn))

    def loaded(self, turn: Turn) -> None:
        """A group was taken up from storage."""
        self._know(turn)
        self._tell(self._facts.loaded(turn))

    def _tell(self, facts: list[Fact]) -> None:
        self.meter.count(facts)
        log_lines.log_facts(facts)

    def _know(self, turn: Turn) -> None:
        if not turn.group.is_unknown:
            self.meter.know(turn.group.name)
