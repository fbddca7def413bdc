"""What has to notice that a rule is broken, and in which order it is asked."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.mutation.mutants import Mutant, Sandbox

SUITES = {
    "tests": (
        "tests/unit/manager",
        "tests/unit/worker/membership",
        "tests/unit/worker/tasks",
        "tests/unit/worker/lag",
        "tests/unit/worker/sinks/test_aside.py",
        "tests/unit/worker/sinks/test_bisection.py",
        "tests/unit/worker/sinks/test_quarantine_elsewhere.py",
        "tests/unit/worker/sinks/test_sifting.py",
        "tests/unit/worker/spark/test_commit_schedule.py",
        "tests/unit/worker/spark/quarantine/test_moved_quarantine.py",
        "tests/unit/worker/spark/quarantine/test_replay_names.py",
        "tests/unit/worker/checks/test_values.py",
        "tests/unit/definition/test_kafka_options.py",
        "tests/unit/definition/test_quarantine.py",
        "tests/unit/definition/test_references.py",
        "tests/unit/definition/test_spark_conf.py",
        "tests/unit/definition/test_kafka_options.py",
        "tests/unit/definition/test_reset_offsets.py",
        "tests/unit/assignors/test_eligibility.py",
        "tests/unit/assignors/test_pace.py",
        "tests/unit/protocol/test_fencing.py",
        "tests/unit/protocol/test_connectors.py",
        "tests/unit/worker/spark/reading/test_jdbc.py",
        "tests/unit/worker/spark/reading/test_relation_options.py",
        "tests/unit/worker/spark/kafka/test_spark_sources.py",
    ),
    "simulation": ("tests/simulation/test_histories.py", "tests/simulation/test_transfer_histories.py"),
}
_TO_BEGIN_WITH = (
    "tests/unit/manager/core/tables/test_tables.py",
    "tests/unit/manager/core/test_fine_print.py",
)
_BEST = 6


class Judge:
    """Asks the files first that are named after the broken module, or have caught most; then all others."""

    def __init__(self) -> None:
        self._caught = Counter(_TO_BEGIN_WITH)
        self._lock = threading.Lock()

    def catches(self, suite: str, mutant: Mutant, sandbox: Sandbox) -> bool:
        """Whether any test of the suite fails in the sandbox, where the mutant is in place."""
        files = sandbox.files(SUITES[suite])
        first = self._likely(files, mutant)
        rest = [file for file in files if file not in first]
        return any(self._fail(files, sandbox) for files in (first, rest) if files)

    def _likely(self, files: list[str], mutant: Mutant) -> list[str]:
        stem = Path(mutant.file).stem
        with self._lock:
            best = [file for file, _ in self._caught.most_common(_BEST) if file in files]
        return list(dict.fromkeys([*(file for file in files if stem in Path(file).stem), *best]))

    def _fail(self, files: list[str], sandbox: Sandbox) -> bool:
        verdict = sandbox.run(files)
        with self._lock:
            self._caught.update(file for file in files if file == verdict.failed)
        return not verdict.passed
