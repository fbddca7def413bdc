"""docs/security.md claims nothing that no test shows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "security.md").read_text()
TABLE = PAGE.partition("## What is defended")[2].partition("## What is not defended")[0]
CLAIMS = [line for line in TABLE.splitlines() if line.startswith("| ") and "| test |" not in line]
NAMED = re.compile(r"`(test_\w+)`")


def all_tests() -> set[str]:
    """The names of all test functions."""
    files = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    return {name for text in files for name in re.findall(r"^(?:async )?def (test_\w+)", text, re.MULTILINE)}


def test_every_claim_names_its_test() -> None:
    """Each row of the table of what is defended."""
    assert len(CLAIMS) > 15
    assert [line for line in CLAIMS if not NAMED.search(line.rpartition("|")[0].rpartition("|")[2])] == []


def test_every_named_test_is_there() -> None:
    """A test that is renamed, or gone, is missed here."""
    assert {name for line in CLAIMS for name in NAMED.findall(line)} - all_tests() == set()
