"""How much memory a task may have that runs in a JVM of its own (docs/isolation.md)."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from definition.reading import Section

LEAST_HEAP_MB: Final = 512
"""Spark starts with no less than 450 MiB."""
_LEAST_PYTHON_MB: Final = 128
"""A Python worker that has loaded PySpark takes so much of its address space."""
_MOST_MB: Final = 1 << 24


class Memory(Section, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In MiB; what is not said is the worker's to choose.

    `heap_mb` is what the task's JVM may use for objects, `python_mb` what each Python worker may that runs
    functions of Python in SQL, in address space.
    """

    heap_mb: Annotated[int, msgspec.Meta(ge=LEAST_HEAP_MB, le=_MOST_MB)] | None = None
    python_mb: Annotated[int, msgspec.Meta(ge=_LEAST_PYTHON_MB, le=_MOST_MB)] | None = None
