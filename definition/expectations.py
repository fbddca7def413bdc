"""What the rows of a task have to be like: `expect` in its definition (protocol §6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from definition.reading import Constraint, Section, readable
from definition.values import IDENTIFIER, LiteralText
from protocol.messages.tasks import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_EXPECTATIONS = 60
"""Of a task; each has one bit of a BIGINT."""
MOST_LETTERS = 100
"""Of a name, which is a label of metrics."""
MOST_WHERE = 2_000
"""Characters of a condition, which is told with every row that violates it."""
RESERVED = frozenset({"unreadable", "refused"})
"""By which rows are counted that no expectation is about."""
_NAME_SHOWN = msgspec.Meta(
    extra_json_schema={"pattern": rf"^{IDENTIFIER}(?![\s\S])", "maxLength": MOST_LETTERS}
)


def name_fault(name: str) -> str | None:
    """What is wrong with the name of an expectation, which stands in causes and metrics."""
    if name.lower() in RESERVED:
        return f"is what other rows are counted by that are left out: {', '.join(sorted(RESERVED))}"
    if name.isidentifier() and len(name) <= MOST_LETTERS:
        return None
    return f"must be a name of letters, digits and _, no digit first, of at most {MOST_LETTERS} characters"


def where_fault(where: str) -> str | None:
    """What is wrong with a condition, as far as its length goes."""
    return None if len(where) <= MOST_WHERE else f"has more than {MOST_WHERE:,} characters"


class Expectation(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A condition that each row of the query's result has to meet.

    `where` is a condition of SQL over the columns of the result. A row meets it only where it is true: where
    it is NULL the row violates it, as with WHERE. `on_violation` is what becomes of such a row: `fail` fails
    its batch, `drop` leaves it out, `quarantine` puts it aside; what is left out is counted.
    """

    name: Annotated[str, Constraint(name_fault), _NAME_SHOWN]
    where: Annotated[
        LiteralText, Constraint(where_fault), msgspec.Meta(extra_json_schema={"maxLength": MOST_WHERE})
    ]
    on_violation: Literal["fail", "drop", "quarantine"] = "fail"

    @property
    def sifts(self) -> bool:
        """Whether a row that violates it is taken out of its batch."""
        return self.on_violation != "fail"

    @property
    def is_quarantined(self) -> bool:
        """Whether a row that violates it is put aside, to be looked at and played again."""
        return self.on_violation == "quarantine"


def expectation_faults(expect: Sequence[Expectation]) -> Iterator[Problem]:
    """What is wrong between several: who reads a count or a cause has to know which one it is of."""
    if len(expect) > MOST_EXPECTATIONS:
        yield Problem("expect", f"has more than {MOST_EXPECTATIONS} expectations")
    seen: dict[str, int] = {}
    for at, each in enumerate(expect):
        first = seen.setdefault(each.name.lower(), at) if readable(each.name) else at
        if first != at:
            yield Problem(f"expect[{at}].name", f"is also the name of expect[{first}]")
