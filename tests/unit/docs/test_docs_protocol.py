"""The diagrams of docs/protocol.md are the state tables' own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from manager.core import group_states
from protocol.states import GroupState
from worker.membership import states

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import Enum

PAGE = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()


def diagram(initial: Enum, moves: Iterable[tuple[Any, Iterable[Enum], Enum]]) -> str:
    """The table in Mermaid's words."""
    arrows = [
        f"    {source.value} --> {target.value}: {move}"
        for move, sources, target in moves
        for source in sources
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {initial.value}", *arrows, "```"])


@pytest.mark.parametrize(
    ("initial", "moves"), [(GroupState.EMPTY, group_states.MOVES), (states.MemberState.DOWN, states.MOVES)]
)
def test_the_diagrams_are_drawn_from_the_tables(initial: Enum, moves: Any) -> None:
    """What the failure shows is what belongs into the page."""
    assert diagram(initial, moves) in PAGE
