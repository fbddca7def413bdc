"""How long the batches of a query take, by looks at it: a rule without I/O."""

from __future__ import annotations

from worker.looks import Looks


class BatchTime:
    """Of the batch under way and of the last finished one, from the start of a query to its end.

    What passed while nobody could look, because the worker or the whole machine was frozen, is taken off
    both: Spark counts it in what a batch took, too.
    """

    def __init__(self) -> None:
        self.under_way_s = 0.0
        self._looks = Looks()
        self._batch_id: int | None = None
        self._is_under_way = False
        self._unseen_s = 0.0
        self._spared_s = 0.0

    def look(self, batch_id: int | None, *, is_at_work: bool, now: float) -> None:
        """A batch begins when the one before has ended, or when the query is first seen at work.

        Args:
            batch_id: of the last finished batch, None before the first.
            is_at_work: whether a batch is under way.
            now: the time, in seconds.
        """
        passed = self._looks.look(now)
        has_finished = batch_id != self._batch_id
        self._batch_id = batch_id
        if has_finished:
            self._spared_s = self._unseen_s + passed.unseen
        if has_finished or not is_at_work:
            self.under_way_s = self._unseen_s = 0.0
        else:
            self._unseen_s += passed.unseen
            self.under_way_s += passed.counts if self._is_under_way else 0.0
        self._is_under_way = is_at_work

    def last_s(self, told_s: float) -> float:
        """What of the `told_s` seconds counts that the last finished batch took by Spark's word."""
        return max(told_s - self._spared_s, 0.0)
