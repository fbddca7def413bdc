"""docs/rest-api.md and the endpoints say the same."""

from __future__ import annotations

from tests.unit.docs.rest_reference import MARK, PAGE, reference


def test_the_reference_is_that_of_the_endpoints() -> None:
    """Run `python -m tests.unit.docs.rest_reference` after a change of them."""
    _, mark, generated = PAGE.read_text().partition(MARK)
    assert mark
    assert generated == reference()
