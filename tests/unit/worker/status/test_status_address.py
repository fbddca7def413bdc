from __future__ import annotations

import pytest

from worker.status import is_local


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("127.0.0.1:8471", True),
        ("localhost", True),
        ("localhost:8471", True),
        ("[::1]:8471", True),
        ("[::1]", True),
        ("evil.example:8471", False),
        ("127.0.0.1.evil.example", False),
        ("10.0.0.1:8471", False),
        ("", False),
        (None, False),
    ],
)
def test_a_page_of_elsewhere_is_known_by_its_name(host: str | None, local: bool) -> None:  # noqa: FBT001 - a table
    """A browser says which name it came by; that name may have been made to lead here."""
    assert is_local(host) is local
