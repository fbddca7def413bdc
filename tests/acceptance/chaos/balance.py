"""What is in the sinks against what was fed, row by row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tests.acceptance.chaos.flows import Flow

Thing: TypeAlias = "tuple[int, Hashable]"
"""A row's number, and whatever else it is to be."""


@dataclass(frozen=True, slots=True)
class Balance:
    """Rows of the sources that are not in the sinks, and rows that are there again, or were never fed.

    `misplaced` are rows that belong to another place than the one where they are.
    """

    lost: int = 0
    twice: int = 0
    misplaced: int = 0

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.lost + other.lost, self.twice + other.twice, self.misplaced + other.misplaced)

    def __str__(self) -> str:
        misplaced = f", misplaced {self.misplaced}" if self.misplaced else ""
        return f"lost {self.lost}, twice {self.twice}{misplaced}"


def of_rows(found: Counter[tuple[int, str]], flow: Flow) -> Balance:
    """By the number and key of each row that is there, and how often it is."""
    due = Counter(flow.due)
    return Balance(lost=(due - found).total(), twice=(found - due).total())


def of_places(due: Mapping[str, Counter[Thing]], found: Mapping[str, Counter[Thing]]) -> dict[str, Balance]:
    """By the number of each row and whatever else it is known by there.

    A row in one place that belongs to another is misplaced where it is; it is lost where it belongs only if
    it is nowhere.
    """
    home = {number: place for place, things in due.items() for number, _ in things}
    seen = [(number, place) for place, things in found.items() for number, _ in things]
    astray = {number for number, place in seen if home.get(number, place) != place}
    return {place: _of_place(due[place], found[place], place, home, astray) for place in due}


def _of_place(
    due: Counter[Thing], found: Counter[Thing], place: str, home: Mapping[int, str], astray: set[int]
) -> Balance:
    missing, surplus = due - found, found - due
    strangers = sum(count for (number, _), count in surplus.items() if home.get(number, place) != place)
    lost = sum(count for (number, _), count in missing.items() if number not in astray)
    return Balance(lost, surplus.total() - strangers, strangers)


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
