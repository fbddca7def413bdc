"""Plays rows again that were put aside: each is moved into the sink, once, or stays where it is.

Beside a sink `sql`, a row leaves the quarantine in the transaction that brings what is made of it.

Elsewhere a replay takes rows by its name, which no other has: a fence of that quarantine's in the sink, its
token, and a number that grows. What cannot be played it gives back; then it writes what came of the others as
one batch of that number, under that fence, and removes them. Whoever comes after a crash finds rows that are
taken, raises the fence that they name, and the sink says whether the batch of that number, by that owner, is
there: then they are removed, else given back. An owner that is overtaken writes nothing more, and takes no
rows that somebody else has.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from protocol.messages.quarantine import QuarantineAnswer
from worker.query_engine import QueryError
from worker.sinks.bisection import Search, put_by_halves
from worker.sinks.fence import Mark
from worker.spark.batches.local_batch import FrameBatch
from worker.spark.quarantine.replay_names import ReplayName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from worker.sinks.base import Sink
    from worker.sinks.fence import FenceRow
    from worker.sinks.quarantine.sql_replay import SqlReplay
    from worker.sinks.quarantine.store import Choice, StoredRow
    from worker.spark.quarantine.places import Place
    from worker.spark.quarantine.player import Player

ROUND: Final = 250
"""Rows that are played at once."""
ROUND_BYTES: Final = 8 * 2**20
"""Of their values together; a single row may be larger."""
CHECKPOINT: Final = "replay"
"""What the batches of replays have in place of a checkpoint."""
_MOST_NOTES: Final = 20
_REPLACED: Final = (
    "the sink upserts: a row that was played again has taken the place of one with its key, also of one that"
    " was written since it was put aside"
)


class Tally:
    """What has become of the rows so far; `replaces` is whether each takes the place of one with its key."""

    def __init__(self, *, replaces: bool = False) -> None:
        self._replaces = replaces
        self.replayed = 0
        self.stayed: dict[str, str] = {}

    @property
    def answer(self) -> QuarantineAnswer:
        """For whoever asked: what was replaced, and the first few rows that stay, each with the reason."""
        told = [_REPLACED] if self._replaces and self.replayed else []
        told += [f"{row} stays: {why}" for row, why in list(self.stayed.items())[:_MOST_NOTES]]
        if len(self.stayed) > _MOST_NOTES:
            told.append(f"{len(self.stayed) - _MOST_NOTES} more stay")
        return QuarantineAnswer(replayed=self.replayed, stayed=len(self.stayed), notes=tuple(told))


def replay(place: Place, choice: Choice, at: Callable[[str], None]) -> QuarantineAnswer:
    """Play rows again.

    Args:
        place: where they are.
        choice: which.
        at: is called between the steps; raises QueryError once nobody waits any more.

    Raises:
        QueryError: the definition does not run, or the sink takes no such rows.
        SinkError: the place or the sink cannot be used; what is moved by then is moved.
    """
    tally = Tally(replaces=place.replaces)
    if place.beside is not None:
        _moved(place.beside, place.player, choice, tally, at)
    else:
        _Elsewhere(place, tally, at).play(choice)
    return tally.answer


def _moved(
    beside: SqlReplay, player: Player, choice: Choice, tally: Tally, at: Callable[[str], None]
) -> None:
    beside.claim()
    beside.prepare(player.fields)
    while rows := _left(beside.store.find(choice, ROUND + len(tally.stayed), oldest_first=True).rows, tally):
        at(f"{len(rows)} rows that are played again")
        rest = _screened(player, rows, tally)

        def put(some: range, rest: Sequence[StoredRow] = rest) -> None:
            at("the next of them")
            these = rest[some.start : some.stop]
            made = player.rows(these)
            beside.move(these, made)

        refused = put_by_halves(len(rest), put, Search(len(rest)))
        tally.stayed |= {rest[each.at].id: each.why for each in refused}
        tally.replayed += len(rest) - len(refused)


def _left(rows: Sequence[StoredRow], tally: Tally) -> list[StoredRow]:
    """Those that are still to be played, as many of them as a JVM bears at once."""
    left: list[StoredRow] = []
    size = 0
    for row in rows:
        size += len(row.raw) if row.id not in tally.stayed else 0
        if left and size > ROUND_BYTES:
            break
        if row.id not in tally.stayed:
            left.append(row)
    return left


def _screened(player: Player, rows: Sequence[StoredRow], tally: Tally) -> list[StoredRow]:
    """The rows that may be played; of the others it is known one by one why not."""
    tally.stayed |= {rows[each.at].id: each.why for each in player.screen(rows)}
    return _left(rows, tally)


class _Elsewhere:
    """Replays into a sink that the quarantine is not beside."""

    def __init__(self, place: Place, tally: Tally, at: Callable[[str], None]) -> None:
        self._place = place
        self._tally = tally
        self._at = at

    def play(self, choice: Choice) -> None:
        """Until there are no rows but those that stay."""
        fence = self._place.fence
        sink = self._place.sink(fence)
        self._at(f"the sink {sink.place}")
        found = {fence: sink.claim()}
        self._settle(found)
        last = found[fence].last
        number = -1 if last is None else last.batch_id
        player = self._place.player
        sink.prepare(player.fields)
        player.ask(sink.conditions())
        store, tally = self._place.store, self._tally
        while _left(store.find(choice, ROUND + len(tally.stayed), oldest_first=True).rows, tally):
            self._at("rows that are played again")
            number += 1
            if not self._round(sink, player, choice, number):
                return  # others have taken what is left

    def _settle(self, found: dict[str, FenceRow]) -> None:
        """What former replays have taken is in the sink, or given back.

        Args:
            found: what the sink says by its fences; those that rows name besides are raised and added.

        Raises:
            QueryError: nobody knows, for the sink has forgotten whose its last batch was.
        """
        store = self._place.store
        for text in store.replays():
            name = ReplayName.read(text)
            if name is not None and name.fence not in found:
                found[name.fence] = self._place.sink(name.fence).claim()
            last = None if name is None else found[name.fence].last
            if name is None or (last is not None and last.plan is None):
                raise QueryError(
                    f"replay {text} ended while it had rows in {store.place}, and the sink does not tell any"
                    " more whether they are there: look, then set their column replay to NULL, or delete them"
                )
            if name.is_in(last):
                self._tally.replayed += store.finish(text)
            else:
                store.give_back(text)

    def _round(self, sink: Sink, player: Player, choice: Choice, number: int) -> bool:
        """Whether there were rows that nobody had taken."""
        store, tally = self._place.store, self._tally
        name = str(ReplayName(self._place.fence, self._place.owner.token, number))
        rows = store.take(choice, name, ROUND + len(tally.stayed))
        if not (free := _left(rows, tally)):
            store.give_back(name)
            return False
        rest = _screened(player, free, tally)
        refused = put_by_halves(len(rest), partial(self._try, player, rest), Search(len(rest)))
        tally.stayed |= {rest[each.at].id: each.why for each in refused}
        good = _left(rest, tally)
        store.give_back(name, {row.id for row in rows} - {row.id for row in good})
        if good:
            mark = Mark(CHECKPOINT, number, name)
            sink.write(FrameBatch(player.result(good), mark))
            tally.replayed += store.finish(name)
        return True

    def _try(self, player: Player, rows: Sequence[StoredRow], some: range) -> None:
        """Only what comes of them is of interest."""
        self._at("the next of them")
        player.try_out(rows[some.start : some.stop])
