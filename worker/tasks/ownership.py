"""The lives of the tasks a worker owns, and of those it has lost but is not rid of yet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from worker.tasks.life import TaskLife

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine, Iterator

    from worker.tasks.grants import Grant
    from worker.tasks.life import Outcome, Tools
    from worker.waiting import News


class Roster:
    """One life a task at most; the next one of the same task begins when the one before is gone.

    Args:
        tools: what every life works with.
        spawn: runs a coroutine in the background.
        ended: is told of each life that came to its end while its task was owned.
        news: is told whenever the roster has changed.
    """

    def __init__(
        self,
        tools: Tools,
        spawn: Callable[[Coroutine[Any, Any, Outcome]], asyncio.Task[Outcome]],
        ended: Callable[[TaskLife, Outcome], None],
        news: News,
    ) -> None:
        self._tools = tools
        self._spawn = spawn
        self._ended = ended
        self._news = news
        self._lives: dict[str, TaskLife] = {}
        self._running: dict[str, asyncio.Task[Outcome]] = {}

    def __iter__(self) -> Iterator[TaskLife]:
        """Every life whose task is owned."""
        return iter(tuple(self._lives.values()))

    def get(self, task: str) -> TaskLife | None:
        """The life of `task`, if it is owned."""
        return self._lives.get(task)

    @property
    def held(self) -> frozenset[str]:
        """The tasks that are owned."""
        return frozenset(self._lives)

    @property
    def leaving(self) -> frozenset[str]:
        """The part of `held` that is on its way out."""
        return frozenset(life.task for life in self if life.is_leaving)

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing runs any more, owned or not."""
        return not self._running

    def begin(self, grant: Grant, confirmed_at: float) -> TaskLife:
        """A new life, its token confirmed by the answer to a request that was sent then."""
        life = self._lives[grant.task] = TaskLife(grant, self._tools, confirmed_at)
        running = self._spawn(life.run(self._running.get(grant.task)))
        self._running[grant.task] = running
        running.add_done_callback(lambda done: self._on_done(life, done))
        self._news.tell()
        return life

    def forget(self, life: TaskLife) -> None:
        """Its task is owned no longer, and its query is gone."""
        if self._lives.get(life.task) is life:
            del self._lives[life.task]
            self._news.tell()

    def cut(self, life: TaskLife) -> None:
        """Its task is owned no longer: end it at once, and have nothing more to do with it."""
        life.cut()
        self.forget(life)

    def _on_done(self, life: TaskLife, done: asyncio.Task[Outcome]) -> None:
        if self._running.get(life.task) is done:
            del self._running[life.task]
        self._news.tell()
        if not done.cancelled() and done.exception() is None and self._lives.get(life.task) is life:
            self._ended(life, done.result())
