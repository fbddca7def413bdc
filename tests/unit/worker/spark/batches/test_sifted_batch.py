"""A batch of which rows are left out, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from worker.sinks.errors import BatchRefusedError
from worker.sinks.fence import Mark
from worker.spark.batches.batch_steps import AS_IT_IS
from worker.spark.batches.local_batch import FrameBatch
from worker.spark.batches.rows import SparkBatch
from worker.spark.batches.sifted_batch import SiftedBatch


class CutBatch(FrameBatch):
    """One that the gate cuts short."""

    def __init__(self, frame: Any) -> None:
        SparkBatch.__init__(self, frame, Mark("c", 0), self._refuse)

    def _refuse(self) -> None:
        raise BatchRefusedError("cut")


def test_a_sink_that_asks_whether_a_sifted_batch_is_wanted_asks_the_gate() -> None:
    """As with a batch of which nothing is left out."""
    frame: Any = None
    with pytest.raises(BatchRefusedError, match="cut"):
        SiftedBatch(frame, AS_IT_IS, CutBatch).check()
