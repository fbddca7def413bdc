"""docs/errors.md has every error code, with its status and whether a retry can help."""

from __future__ import annotations

import re
from pathlib import Path

from protocol.errors import ErrorCode

ROW = re.compile(r"\| `([A-Z_]+)` \| (\d+) \| (final|retriable) \| \S.*\|")
PAGE = (Path(__file__).parents[3] / "docs" / "errors.md").read_text()


def test_the_page_and_the_table_of_codes_say_the_same() -> None:
    """In the same order; each with a sentence."""
    rows = [match.groups() for match in map(ROW.fullmatch, PAGE.splitlines()) if match]
    codes = [(code.name, str(code.status), "retriable" if code.retriable else "final") for code in ErrorCode]
    assert rows == codes
