"""How far tasks are behind what they read: the worker's own and, if it leads the group, those of nobody."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from definition.document import DefinitionError, parse_definition
from protocol.errors import ErrorCode, Failure
from protocol.messages.lag import without_partitions
from protocol.messages.ownership import LagRequest
from worker.query_engine import QueryError, QuerySpec
from worker.tasks.exchange.batches import encoded_size, in_batches, smaller

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from protocol.messages.lag import TaskLag
    from protocol.messages.ownership import LagResponse, OwnerlessTask
    from worker.query_engine import QueryEngine
    from worker.tasks.exchange.manager_link import ManagerLink
    from worker.tasks.life import TaskLife

SHARE: Final = 4
"""With many tasks looks take long: then the pauses grow, to so many times what the last look took.

Brokers that did not answer do not count: once they do, one is to hear of it soon.
"""
AGAIN_S: Final = 600.0
"""From one look at a task to the next, as far as pauses go: the manager shows a word for 15 minutes.

Of tasks that nobody owns one round takes many looks, and each may have its part of that only.
"""


class LagReports:
    """Measures, and tells.

    Only sources that can be asked without a query are measured (protocol §5, Lag). One task after another: a
    broker that does not answer keeps only this from going on.

    Args:
        link: to the manager.
        engine: what brokers and checkpoints are asked by.
        group: whose tasks.
        lives: the worker's own.
        every_s: seconds between two looks at the brokers.
    """

    def __init__(
        self,
        link: ManagerLink,
        engine: QueryEngine,
        group: str,
        lives: Callable[[], Iterable[TaskLife]],
        *,
        every_s: float,
    ) -> None:
        self._link = link
        self._engine = engine
        self._group = group
        self._lives = lives
        self._every_s = every_s
        self._measured: dict[str, TaskLag] = {}
        self._untold: dict[str, TaskLag] = {}
        self._answered_s = 0.0
        self._part = 1.0

    @property
    def ownerless(self) -> dict[str, TaskLag]:
        """What was measured last of tasks that nobody owns; nothing unless this worker leads the group."""
        return self._measured

    async def run(self) -> None:
        """Measure, for ever."""
        clock = self._link.clock
        while True:
            await clock.sleep(self._every_s)
            self._answered_s, self._part, began = 0.0, 1.0, clock.now()
            with suppress(QueryError):  # there is no Spark at the moment
                await self._measure_own()
                await self._measure_ownerless()
            left_s = max(began + AGAIN_S * self._part - clock.now(), 0.0)
            await clock.sleep(min(SHARE * self._answered_s, left_s))

    async def _measure_own(self) -> None:
        if not self._engine.measures:
            return
        for life in tuple(self._lives()):
            grant, spec = life.desired.grant, life.spec()
            life.note_lag(grant, None if spec is None else await self._lag(spec, grant.revision))

    async def _measure_ownerless(self) -> None:
        """Whoever does not lead the group is told of none."""
        told, self._untold = self._untold, {}
        if not self._engine.measures or not self._link.identity().member_id:
            self._measured = {}
            return
        batches = list(in_batches(told.items(), encoded_size, most=len(told))) or [[]]
        for batch in batches[:-1]:
            await self._tell(batch, more=True)
        answer = await self._tell(batches[-1], more=False)
        if isinstance(answer, Failure):
            self._measured = {}
            return  # of what matters, heartbeats and reports hear, too
        self._part = min(len(answer.tasks) / answer.ownerless, 1.0) if answer.ownerless else 1.0
        measured = {
            task.task: await self._lag(spec, answer.tasks_revision)
            for task in answer.tasks
            if (spec := self._spec(task))
        }
        self._measured = self._untold = {task: lag for task, lag in measured.items() if lag is not None}

    async def _tell(self, batch: Sequence[tuple[str, TaskLag]], *, more: bool) -> LagResponse | Failure:
        """Tell of these tasks, in parts if need be; unless there are more, the answer has the next ones."""
        link = self._link
        member_id, tasks = link.identity().member_id, dict(batch)
        answer = await link.manager.lag(
            LagRequest(member_id=member_id, instance_id=link.instance_id, tasks=tasks, more=more)
        )
        if isinstance(answer, Failure) and answer.code is ErrorCode.PAYLOAD_TOO_LARGE:
            parts = list(smaller(batch, _without_partitions))
            for part in parts:
                answer = await self._tell(part, more=more or part is not parts[-1])
        return answer

    def _spec(self, task: OwnerlessTask) -> QuerySpec | None:
        try:
            definition = parse_definition(task.definition)
        except DefinitionError:  # of a later version
            return None
        return QuerySpec(self._group, task.task, 0, definition, task.reset, home=task.home)

    async def _lag(self, spec: QuerySpec, revision: int | None) -> TaskLag | None:
        """The lag of a task as it was at that revision of the group."""
        clock = self._link.clock
        began = clock.now()
        lag = await self._engine.lag(spec)
        if lag is None:
            return None
        if lag.trouble is None:
            self._answered_s += clock.now() - began
        return msgspec.structs.replace(lag, tasks_revision=revision)


def _without_partitions(told: tuple[str, TaskLag]) -> tuple[str, TaskLag] | None:
    """One task alone that is too large for the manager, told by its sums."""
    task, lag = told
    return (task, without_partitions(lag)) if lag.partitions else None
