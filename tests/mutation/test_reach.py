"""Which tests are asked about a mutant: those that come to the place that it breaks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.mutation import mutants
from tests.mutation.mutants import Mutant
from tests.mutation.reach import OPTIONS, Reach, places
from tests.mutation.suites import SUITES, Judge

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

RULE = """\
LEAST = 3


def is_enough(
    number: int,
) -> bool:
    if number < LEAST:
        return False
    return (
        number
        > 0
    )
"""
TESTS = """\
import pytest
from manager.rule import is_enough

def test_few():
    assert not is_enough(1)

@pytest.mark.parametrize("number", [4, 5])
def test_many(number):
    assert is_enough(number)

def test_none():
    pass
"""
FILE, UNUSED, TEST_FILE = "manager/rule.py", "manager/unused.py", "test_rule.py"


@pytest.fixture(scope="module")
def reach(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reach]:
    """Of the tests above, of a tree that has no other ones."""
    root = tmp_path_factory.mktemp("tree")
    (root / "manager").mkdir()
    (root / "manager/__init__.py").write_text("")
    for file in (FILE, UNUSED):
        (root / file).write_text(RULE)
    (root / TEST_FILE).write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_cov.plugin", *OPTIONS, TEST_FILE]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run(command, cwd=root, env=environ, check=True, capture_output=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mutants, "ROOT", root)
        yield Reach.read(root / ".coverage", root)


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        ("        return False\n", {"test_few"}),
        ("        > 0", {"test_many[4]", "test_many[5]"}),
        ("    if number < LEAST:", {"test_few", "test_many[4]", "test_many[5]"}),
        ("    number: int,", {"test_few", "test_many[4]", "test_many[5]"}),
        ("LEAST = 3", set()),
    ],
)
def test_only_those_are_asked_that_come_to_the_place(reach: Reach, code: str, tests: set[str]) -> None:
    """By its lines, or by the statement that it is in; what is run at the import is everybody's."""
    found = reach.of(Mutant("a rule", FILE, code, ""))
    assert found == {f"{TEST_FILE}::{test}" for test in tests}


def test_of_a_file_that_nothing_runs_nothing_is_known(reach: Reach) -> None:
    """All tests are asked then."""
    assert not reach.of(Mutant("a rule", UNUSED, "        return False\n", ""))


def test_a_place_is_told_by_its_lines_and_then_by_what_is_around_it() -> None:
    """A line break that the code begins or ends with is not part of it."""
    found = [*places(RULE, "\n        return False\n")]
    assert found == [range(8, 9), range(8, 9), range(7, 9), range(4, 13)]


class Asked:
    """A sandbox whose tests all pass, and that remembers which they were."""

    def __init__(self) -> None:
        self.tests: list[list[str]] = []

    def files(self, places: Sequence[str]) -> list[str]:
        """They are files."""
        return [*places]

    def run(self, tests: list[str]) -> mutants.Verdict:
        """None fails."""
        self.tests.append(tests)
        return mutants.Verdict(passed=True)


def asked_about(reach: Reach, code: str) -> list[str]:
    """The tests that a mutant that survives has met, in order."""
    asked, suite = Asked(), "tests"
    assert not Judge({suite: reach}).catches(suite, Mutant("a rule", FILE, code, ""), asked)  # type: ignore[arg-type]
    return [test for some in asked.tests for test in some]


def test_a_survivor_has_met_each_test_that_could_have_noticed(reach: Reach) -> None:
    """Once; and all the files of the suite where nothing is known of its place."""
    assert asked_about(reach, "        return False\n") == [f"{TEST_FILE}::test_few"]
    assert sorted(asked_about(reach, "LEAST = 3")) == sorted(SUITES["tests"])
