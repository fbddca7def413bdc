"""How the tasks of each worker fare, as a bar each: of a group whose tasks have no room on a map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from manager.console.charts.bars import divided
from manager.console.state_labels import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from markupsafe import Markup

    from manager.console.pages.members import KnownMember, MemberLabel


@dataclass(frozen=True, slots=True)
class WorkerBar:
    """A worker's tasks by state, as long as they are many beside the most that one has.

    `trouble` is what is wrong with it, empty if nothing is.
    """

    worker: MemberLabel
    tasks: int
    bar: Markup
    trouble: str


def worker_bars(shown: Iterable[KnownMember], known: Iterable[KnownMember]) -> tuple[WorkerBar, ...]:
    """One for each of `shown`, compared with all that are `known`."""
    most = max((member.owned.tasks for member in known), default=0)
    return tuple(_bar(member, most) for member in shown)


def _bar(member: KnownMember, most: int) -> WorkerBar:
    counts = {each.state: each.count for each in in_order(member.owned.states)}
    trouble = "silent" if member.silent else f"{member.failed:,} failed" if member.failed else ""
    return WorkerBar(member.label, member.owned.tasks, divided(counts, most), trouble)
