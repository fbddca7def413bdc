"""A query without a fence that will not stop, in a worker whose manager is gone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.chaos.stage import jvm_of
from tests.acceptance.group_view import GroupView
from tests.acceptance.test_hung_jvm import present
from tests.acceptance.waiting import eventually

if TYPE_CHECKING:
    from tests.acceptance.processes import Herd

pytestmark = [pytest.mark.spark, pytest.mark.processes, pytest.mark.timeout(1200)]

ENDLESS = """
import threading

def run(context):
    def write(batch, batch_id):
        while True:
            with open("rows", "a") as rows:
                rows.write("one more\\n")
            threading.Event().wait(0.01)

    return context.spark.readStream.format("rate").load().writeStream.foreachBatch(write)
"""


def test_a_query_that_will_not_stop_ends_with_its_worker(herd: Herd) -> None:
    """Its batch is a function that never returns; Spark waits for it, and so would every stop."""
    (herd.folder / "endless.py").write_text(ENDLESS)
    flags = ("--session-timeout-ms", "6000", "--allow-entrypoint", "endless")
    worker, group = herd.start_worker("anna", *flags), GroupView(herd)
    eventually(lambda: present(group), "the worker is a member", alive=herd.daemons)
    group.create("one", {"entrypoint": "endless:run"})
    eventually((herd.folder / "rows").exists, "a batch is under way", alive=herd.daemons)
    jvm = jvm_of(worker)
    herd.manager.kill()
    assert worker.process.wait(400) == 4
    assert "queries without a fence were not over in time" in worker.log()
    eventually(lambda: _is_gone(jvm), "the JVM is gone", alive=())


def _is_gone(pid: int) -> bool:
    """Whether it does nothing any more; its entry may stay until somebody has asked how it ended."""
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(") ")[2].startswith("Z")
