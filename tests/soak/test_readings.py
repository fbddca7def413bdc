"""What is read of processes, of this one and of what `jcmd` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.soak.readings import descendants, entries, heap_reading_of, named, process_reading

if TYPE_CHECKING:
    from pathlib import Path

HISTOGRAM = """14756:
 num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:        100          2400  [B (java.base@17.0.15)
   2:          3           600  org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution
   3:          2            48  org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution$$anon$1
   4:          1            16  org.apache.spark.sql.classic.SparkSession
Total           106          3064
"""


def test_a_histogram_is_summed_and_counted() -> None:
    """By whole names: an inner class is another one, and the line below is no class."""
    found = heap_reading_of(HISTOGRAM)
    assert found.live == 3064
    assert found.counts == {"queries": 3, "sessions": 1, "gateway_threads": 0}


def test_this_process_has_memory_threads_and_files() -> None:
    """One that is over has none."""
    found = process_reading(os.getpid())
    assert found is not None
    assert found.memory > 2**20
    assert found.threads >= 1
    assert found.files >= 3
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert process_reading(gone.pid) is None


def test_what_a_process_has_started_is_found_by_name() -> None:
    """As long as it runs."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert child.stdout.readline() == b"\n", "it has its name by now"
        assert child.pid in descendants(os.getpid())
        assert named([child.pid, os.getpid()], "cat") == [child.pid]
        child.kill()
    assert child.pid not in descendants(os.getpid())


def test_entries_are_counted_at_any_depth(tmp_path: Path) -> None:
    """A folder that is not there has none."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "file").touch()
    assert entries(tmp_path) == 3
    assert entries(tmp_path / "none") == 0
