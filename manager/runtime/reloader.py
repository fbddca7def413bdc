"""Groups whose memory is gone, or whose rows could not be read: brought back from what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from manager.runtime.unloadable_groups import UnloadableGroups

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from manager.core.stored_rows import Row
    from manager.runtime.commits import Commits
    from manager.runtime.routing import GroupRouting
    from manager.storage.base import Storage


GROUPS_AT_ONCE: Final = 50
ROWS_AT_ONCE: Final = 5000
"""To take that many up is some 10 ms; storage reads them in smaller pieces still."""


class Reading(NamedTuple):
    """What was read of some groups, and the epochs of their slots from before that."""

    groups: Collection[str]
    epochs: Mapping[int, int]
    rows: Mapping[str, list[Row]]


class Reloader:
    """Takes groups up from their rows: lost ones when the writer says so, unloadable ones from time to time.

    Args:
        storage: what they are read from.
        routing: which of them are still ours.
        commits: which of them are lost.
        on_lost: called for a group that cannot be taken up.
        on_loaded: takes a group up from its rows; may raise whatever it likes.
    """

    def __init__(
        self,
        storage: Storage,
        routing: GroupRouting,
        commits: Commits,
        *,
        on_lost: Callable[[str], None],
        on_loaded: Callable[[str, Iterable[Row]], None],
    ) -> None:
        self._storage = storage
        self._routing = routing
        self._commits = commits
        self._on_lost = on_lost
        self._on_loaded = on_loaded
        self.unloadable = UnloadableGroups(self._read_unloadable)

    def due(self) -> tuple[str, ...]:
        """Lost groups that are ours to read, some at a time; whoever takes a slot over reads those of it."""
        for name in self._commits.to_reload():
            if not self._routing.serves(name):
                self._commits.reloaded(name)
        return self._commits.to_reload()[:GROUPS_AT_ONCE]

    async def read(self, groups: Collection[str]) -> Reading:
        """As many of the lost `groups` as are taken up at once; raises `StorageError`."""
        sizes = await self._sizes([name for name in groups if self._routing.serves(name)])
        return await self._read(next(load_batches(sizes), ()))

    def take_up_all(self, reading: Reading) -> None:
        """Those whose slots have been ours since, under the same epochs.

        A slot that was lost and taken again meanwhile has been read anew, and may have gone on from there:
        what was read before is of before.
        """
        served = [name for name in reading.groups if self._routing.serves(name)]
        present = self._routing.epochs(served)
        for name in served:
            if present.get(slot := self._routing.slot_of(name)) == reading.epochs.get(slot):
                self.take_up(name, reading.rows.get(name, ()))

    def take_up(self, name: str, rows: Iterable[Row]) -> None:
        """Bring a group back from its rows; one that resists is unloadable, and tried again later."""
        self._commits.reloaded(name)
        try:
            self._on_loaded(name, rows)
        except Exception as error:  # noqa: BLE001 - a group that cannot be taken up stops no other
            self._on_lost(name)
            self.unloadable.add(name, error)
        else:
            self.unloadable.remove(name)

    async def _read_unloadable(self) -> None:
        """Somebody may have mended their rows; others' rows are written meanwhile, for these may be many.

        First only the rows that were in the way. Nothing of the groups is written, so no epoch is raised.
        """
        still = await self._storage.still_unreadable(self.unloadable.rows())
        mended = [name for name in self.unloadable.faults() if name not in still]
        for some in load_batches(await self._sizes(self._unloadable_here(mended))):
            reading = await self._read(self._unloadable_here(some))
            self.take_up_all(reading._replace(groups=self._unloadable_here(reading.groups)))

    def _unloadable_here(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if self.unloadable.get(name) and self._routing.serves(name))

    async def _read(self, groups: Collection[str]) -> Reading:
        epochs = dict(self._routing.epochs(groups))
        return Reading(groups, epochs, await self._storage.load(groups))

    async def _sizes(self, names: Collection[str]) -> dict[str, int]:
        """Nothing is stored of a group that was deleted; it is to be taken up all the same."""
        sizes = await self._storage.group_sizes(names)
        return {name: sizes.get(name, 0) for name in names}


def load_batches(sizes: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
    """The groups that are taken up before heartbeats and leases have their turn again: a few, of few rows.

    A group of more than `ROWS_AT_ONCE` rows comes alone.

    Args:
        sizes: groups in the order to keep, each with the number of its rows.
    """
    some: list[str] = []
    rows = 0
    for name, size in sizes.items():
        if some and (len(some) == GROUPS_AT_ONCE or rows + size > ROWS_AT_ONCE):
            yield tuple(some)
            some, rows = [], 0
        some.append(name)
        rows += size
    if some:
        yield tuple(some)
