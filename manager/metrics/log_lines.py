"""What has happened to groups, as lines of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from manager.metrics.facts import DepartureKind, GroupForgotten, MemberGone, Rebalanced, TaskFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from manager.metrics.facts import Fact

log = structlog.get_logger(__name__)


def log_facts(facts: Iterable[Fact]) -> None:
    """A line each."""
    for fact in facts:
        match fact:
            case Rebalanced(cause, line):
                log.info(
                    "rebalanced",
                    group=line.group,
                    generation=line.generation_id,
                    began_with=cause.value,
                    reason=line.reason,
                    duration_ms=line.duration_ms,
                    members=line.members,
                    moved=line.moved,
                )
            case MemberGone(group, generation, member, how):
                say = log.warning if how is DepartureKind.LOST else log.info
                say("member gone", group=group, generation=generation, member=member, how=how.value)
            case TaskFailed(row):
                log.warning(
                    "task failed",
                    group=row.group,
                    generation=row.generation_id,
                    task=row.task,
                    member=row.owner,
                    token=row.token,
                    cause=(row.cause or "").partition("\n")[0],
                )
            case GroupForgotten(group):
                log.info("group forgotten", group=group)
