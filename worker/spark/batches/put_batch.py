"""What both ways to a Spark do with each batch: put it into its sink, sifted if rows are left out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from worker.left_out import NOTHING, LeftOut
from worker.spark.batches.sifted_batch import SiftedBatch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from worker.sinks.base import Sink
    from worker.spark.batches.batch_steps import BatchSteps
    from worker.spark.batches.sifted_batch import Backend


class Put(NamedTuple):
    """What became of a batch: how many rows of the task the sink holds, and how many were left out of it."""

    total: int
    left_out: LeftOut


def put_batch(sink: Sink, frame: DataFrame, steps: BatchSteps, backend: Backend) -> Put:
    """Put a batch into a sink.

    Args:
        sink: claimed and prepared.
        frame: as the query's plan has it.
        steps: what is to be done with it before.
        backend: makes batches of frames.
    """
    if not steps:
        written = sink.write(backend(frame))
        return Put(written.total, written.left_out)
    batch = SiftedBatch(frame, steps, backend)
    try:
        written = sink.write(batch)
    finally:
        batch.release()
    return Put(written.total, NOTHING if written.duplicate else batch.left_out + written.left_out)
