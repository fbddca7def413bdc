"""What is in the sinks against what was fed, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.acceptance.chaos.flows import Flow


@dataclass(frozen=True, slots=True)
class Balance:
    """Rows of the sources that are not in the sinks, and rows that are there again, or were never fed."""

    lost: int = 0
    twice: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.lost + other.lost, self.twice + other.twice)


def of_rows(found: Counter[tuple[int, str]], flow: Flow) -> Balance:
    """By the number and key of each row that is there, and how often it is."""
    due = Counter(flow.due)
    return Balance(lost=(due - found).total(), twice=(found - due).total())


def of_counts(found: Mapping[str, tuple[int, int]], flow: Flow) -> Balance:
    """By the count of each key; the sum of the numbers shows what equal counts of other rows would hide."""
    due: dict[str, list[int]] = {}
    for number, key in flow.due:
        due.setdefault(key, []).append(number)
    balance = Balance()
    for key in {*due, *found}:
        numbers = due.get(key, [])
        count, total = found.get(key, (0, 0))
        surplus = count - len(numbers)
        swapped = int(surplus == 0 and total != sum(numbers))
        balance += Balance(lost=max(-surplus, 0) + swapped, twice=max(surplus, 0) + swapped)
    return balance
