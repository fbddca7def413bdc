"""What a task's definition says of the rows that are put aside, for whoever opens its sink."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from definition.quarantine import Quarantine
from worker.sinks.aside import Beside, Limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from definition.document import Definition
    from definition.sink import Sink
    from worker.sinks.base import Condition

_USUAL: Final = Quarantine()


@dataclass(frozen=True, slots=True)
class PuttingAside:
    """Where rows go that are put aside, and how many may; travels to a Spark Connect server.

    Args:
        quarantine: of the definition, secrets filled in.
        takes_refused: whether rows that the sink refuses are put aside.
        rules: a digest of what decides which rows are put aside.
    """

    quarantine: Quarantine
    takes_refused: bool
    rules: str

    @property
    def limits(self) -> Limits:
        """How many rows of a batch may be put aside."""
        return Limits(self.quarantine.max_quarantined_per_batch, self.quarantine.max_quarantined_ratio)

    @property
    def beside(self) -> Beside | None:
        """For a sink `sql` whose database has the quarantine, too; None if it is elsewhere."""
        if self.quarantine.format is not None:
            return None
        return Beside(self.quarantine.beside, self.limits, self.takes_refused)

    @property
    def elsewhere(self) -> Sink | None:
        """What writes it, if it is elsewhere."""
        return self.quarantine.sink


def putting_aside(definition: Definition, resolved: Definition) -> PuttingAside | None:
    """What a definition says; None if no row of its task is ever put aside.

    Args:
        definition: as it is stored, without secrets: a digest of those would be one more place to find them.
        resolved: with its references filled in.
    """
    takes_refused = definition.on_error == "quarantine"
    if not takes_refused and not any(each.is_quarantined for each in definition.expect):
        return None
    return PuttingAside(resolved.quarantine or _USUAL, takes_refused, _digest(definition))


def rules_with(rules: str, conditions: Sequence[Condition]) -> str:
    """A digest of what decides which rows are put aside, with the conditions of the sink.

    Args:
        rules: the digest of the definition.
        conditions: those of the sink by which rows are put aside; none if none are.
    """
    if not conditions:
        return rules
    said = msgspec.json.encode([tuple(each) for each in conditions])
    return f"{rules}-{sha256(said).hexdigest()[:12]}"


def _digest(definition: Definition) -> str:
    """Of all that decides which rows come out of a batch, and which of them are put aside."""
    decisive = msgspec.structs.replace(definition, trigger=None, quarantine=None)
    return sha256(decisive.effect()).hexdigest()[:12]
