"""How whatever is looked at says that it is not as it has to be."""

from __future__ import annotations


class InvariantError(AssertionError):
    """An invariant does not hold; `rule` names it."""

    def __init__(self, rule: str, detail: object) -> None:
        super().__init__(f"{rule}: {detail}")
        self.rule = rule


def hold(rule: str, holds: object, detail: object = "") -> None:
    """Raise unless it holds."""
    if not holds:
        raise InvariantError(rule, detail() if callable(detail) else detail)
