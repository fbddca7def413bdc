"""What an assignment, or news of a task, means for what runs (protocol §5). Rules without I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from worker.tasks.grants import Grant


@dataclass(frozen=True, slots=True)
class Round:
    """What to do about a new assignment; a task in neither set is not touched."""

    leave: frozenset[str]
    claim: frozenset[str]


def plan_round(assigned: AbstractSet[str], held: AbstractSet[str], leaving: AbstractSet[str]) -> Round:
    """Compare what is assigned with what is held; `leaving` is the part of `held` on its way out already.

    Everything assigned is claimed, what is held included: the same token comes back, with the present target
    and definition. Only what is leaving waits until it is released: its claim would be granted under the
    token that the release is about to give back.
    """
    return Round(
        leave=frozenset(held - assigned - leaving),
        claim=frozenset(assigned - leaving),
    )


def is_outdated(acted_on: Grant, wanted: Grant) -> bool:
    """Whether what is done because of one grant is not what another of the same token asks for.

    Another target or restart count, or a definition that differs in effect: stop, start afresh. What differs
    in nothing but weight, pin, labels or restart policy runs on. One that could not be used for its target,
    and can be now, is another one, too.
    """
    if (acted_on.target, acted_on.restart_count) != (wanted.target, wanted.restart_count):
        return True
    return not _runs_like(acted_on, wanted)


def _runs_like(acted_on: Grant, wanted: Grant) -> bool:
    if acted_on.definition is None or wanted.definition is None:
        return acted_on.document == wanted.document and acted_on.fault == wanted.fault
    if acted_on.document == wanted.document:
        return True
    return acted_on.definition.runs_like(wanted.definition)
