"""A task's share of the executors' cores, where several tasks have one Spark (protocol §6)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from definition.reading import Section

_MOST: Final = 1_000_000
"""Spark's integers hold more; no pool needs it."""


class Scheduling(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Its pool of Spark's fair scheduler, by the two figures of `fairscheduler.xml`.

    While several pools want cores, those below their `min_share` (of cores) come first; the others get them
    in proportion to their `weight`.
    """

    weight: Annotated[int, msgspec.Meta(ge=1, le=_MOST)] = 1
    min_share: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] = 0
