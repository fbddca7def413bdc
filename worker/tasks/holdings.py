"""What a worker owns, for those who do something else with a task than run it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from worker.query_engine import QueryError

if TYPE_CHECKING:
    from worker.query_engine import QuerySpec
    from worker.tasks.life import TaskLife
    from worker.tasks.ownership import Ownership


class Holdings:
    """Looks at `ownership`, and changes nothing."""

    def __init__(self, ownership: Ownership) -> None:
        self._ownership = ownership

    def spec_of(self, task: str, token: int) -> QuerySpec | None:
        """What is run of `task`, or would be; None if it is not owned under `token`, or on its way out.

        Raises:
            QueryError: its definition cannot be read.
        """
        life = self._life(task, token)
        if life is None:
            return None
        spec = life.spec()
        if spec is None:
            raise QueryError(life.desired.grant.fault, permanent=True)
        return spec

    async def until_lost(self, task: str, token: int) -> None:
        """Wait until `task` is not owned under `token` any more, or on its way out."""
        if (life := self._life(task, token)) is not None:
            await life.desired.changed.until(lambda: life.desired.is_leaving)

    def _life(self, task: str, token: int) -> TaskLife | None:
        life = self._ownership.get(task)
        return life if life is not None and life.token == token and not life.desired.is_leaving else None
