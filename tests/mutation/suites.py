"""What has to notice that a rule is broken, and in which order it is asked."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from tests.mutation.mutants import Mutant, Sandbox
    from tests.mutation.reach import Reach

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
        "tests/unit/worker/spark/test_prepared_starts.py",
        "tests/unit/worker/spark/quarantine/test_moved_quarantine.py",
        "tests/unit/worker/spark/quarantine/test_replay_names.py",
        "tests/unit/worker/checks/test_values.py",
        "tests/unit/definition/test_kafka_options.py",
        "tests/unit/definition/test_quarantine.py",
        "tests/unit/definition/test_same_place.py",
        "tests/unit/definition/test_references.py",
        "tests/unit/definition/test_spark_conf.py",
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
    """Asks those first that are in files named after the broken module, or that have caught most."""

    def __init__(self, reach: Mapping[str, Reach]) -> None:
        """`reach` says of each suite which tests come to which lines."""
        self._reach = reach
        self._caught = Counter(_TO_BEGIN_WITH)
        self._lock = threading.Lock()

    def catches(self, suite: str, mutant: Mutant, sandbox: Sandbox) -> bool:
        """Whether any test of the suite fails in the sandbox, where the mutant is in place.

        Asked are those that come to its place; all of them if that is run as its module is imported.
        """
        tests = sorted(self._reach[suite].of(mutant)) or sandbox.files(SUITES[suite])
        likely = self._likely({file_of(test) for test in tests}, mutant)
        first = [test for test in tests if file_of(test) in likely]
        rest = [test for test in tests if file_of(test) not in likely]
        return any(self._fail(some, sandbox) for some in (first, rest) if some)

    def _likely(self, files: AbstractSet[str], mutant: Mutant) -> frozenset[str]:
        stem = Path(mutant.file).stem
        with self._lock:
            best = [file for file, _ in self._caught.most_common() if file in files][:_BEST]
        return frozenset([*(file for file in files if stem in Path(file).stem), *best])

    def _fail(self, tests: list[str], sandbox: Sandbox) -> bool:
        verdict = sandbox.run(tests)
        with self._lock:
            self._caught.update(file for file in {*map(file_of, tests)} if file == verdict.failed)
        return not verdict.passed


def file_of(test: str) -> str:
    """Where a test is; a file is where it is itself."""
    return test.partition("::")[0]
