"""What somebody does about rows that were put aside: what is wrong is mended, then they are played again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.errors import ErrorCode, RefusedError
from tests.acceptance.chaos.put_aside import PutsAside

if TYPE_CHECKING:
    from protocol.messages.quarantine import QuarantineResponse
    from tests.acceptance.chaos.flows import Flow
    from tests.acceptance.chaos.stage import Stage


_HALF_DONE: Final = frozenset({ErrorCode.QUARANTINE_INTERRUPTED, ErrorCode.QUARANTINE_TIMED_OUT})
"""Answers to a replay that has come to no end that anybody knows of."""


class Mending:
    """Of the tasks of a stage, one after the other.

    `answers` are those of all replays that came to their end; `interrupted` counts the others, which may have
    been done in part.
    """

    def __init__(self, stage: Stage) -> None:
        assert isinstance(stage.sinks, PutsAside)
        self._stage = stage
        self._sinks = stage.sinks
        self.answers: list[QuarantineResponse] = []
        self.interrupted = 0
        self._by_hand = 0

    def mend(self, flow: Flow) -> None:
        """Lift the constraint, give the task a definition that takes more, write anew what is no JSON.

        Not inside a batch: that has been begun by the former definition.
        """
        self._stage.wait(lambda: self._is_between_batches(flow), f"{flow.name} has done all there is")
        self._sinks.lift(flow)
        flow.mended = True
        self._stage.view.put(flow.name, self._stage.definition(flow))
        self._write_anew(flow)

    def replay(self, flow: Flow) -> bool:
        """Ask for all rows to be played again; False if that may be asked again, and True if it is done."""
        try:
            self.answers.append(self._stage.view.replay(flow.name))
        except RefusedError as refused:
            code = refused.failure.code
            if not (code.retriable or code in _HALF_DONE):
                raise
            self.interrupted += code in _HALF_DONE
            return False
        return True

    def empty(self, flow: Flow) -> None:
        """Until all rows that were fed are in the sink, whoever of them was put aside meanwhile."""
        self._stage.wait(lambda: self._is_empty(flow), f"the quarantine of {flow.name} is empty")
        assert self._stage.view.put_aside(flow.name) == 0

    def empty_mended(self) -> None:
        """Rows of other tasks have come as well, of which some can be read by nothing."""
        for flow in self._stage.flows:
            if flow.mended:
                self.empty(flow)

    def __str__(self) -> str:
        played = sum(answer.replayed for answer in self.answers)
        return (
            f"mended: {self._by_hand} rows written anew, {played} told to be played again by"
            f" {len(self.answers)} replays, {self.interrupted} more interrupted"
        )

    def _is_between_batches(self, flow: Flow) -> bool:
        return self._sinks.has_all_of(flow) and not self._stage.is_in_batch([flow.name])

    def _is_empty(self, flow: Flow) -> bool:
        """Rows that come by the present definition may be put aside until nothing is left to be read."""
        if not self._sinks.has_all_of(flow):
            return False
        if not self._sinks.aside(flow):
            return True
        self._write_anew(flow)
        self.replay(flow)
        return False

    def _write_anew(self, flow: Flow) -> None:
        """What no options make readable; of what is there again as it was fed, nothing is forgotten."""
        there = {row.content for row in self._sinks.aside(flow)}
        bad = [each for each in flow.due_bad if each.needs_a_hand and each.line in there]
        if bad:
            self._sinks.write_anew(flow, bad)
            self._by_hand += len(bad)
