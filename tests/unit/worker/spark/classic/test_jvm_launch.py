"""What a JVM is started with; a script stands in for `spark-submit`, which becomes the JVM (`exec`)."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING

import pytest

from worker.query_engine import QueryError
from worker.spark.classic.jvm import Jvm

if TYPE_CHECKING:
    from pathlib import Path

SUBMIT = """#!/bin/bash
ls -l /proc/$$/fd > "$SPARK_HOME/open"
exit 1
"""


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # PySpark leaves the pipe to a JVM that failed open
def test_the_jvm_keeps_what_it_is_to_keep(tmp_path: Path) -> None:
    """And no other file of the worker's."""
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(SUBMIT)
    script.chmod(0o700)
    with (tmp_path / "mine").open("w"), (tmp_path / "lock").open("w") as lock:
        with pytest.raises(QueryError):
            Jvm.launch({**os.environ, "SPARK_HOME": str(tmp_path)}, [lock.fileno()])
        gc.collect()
        seen = (tmp_path / "open").read_text()
        assert f" {lock.fileno()} -> {tmp_path}/lock\n" in seen
        assert f"{tmp_path}/mine" not in seen
