"""Which tests run which lines: those that never come to a broken place cannot notice it."""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING, Final

from coverage import CoverageData

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.mutation.mutants import Mutant

CODE: Final = ("assignors", "definition", "manager", "protocol", "worker")
"""The packages that mutants are in."""
OPTIONS: Final = (
    *(f"--cov={package}" for package in CODE),
    f"--cov-config={os.devnull}",  # branches would take a quarter longer
    "--cov-context=test",
    "--cov-report=",
)

Tests = frozenset[str]
"""Their ids, as pytest takes them."""


class Reach:
    """As coverage saw it while nothing was broken."""

    def __init__(self, lines: Mapping[str, Mapping[int, Tests]]) -> None:
        """`lines` are the tests that run each line of each file, by the file's path below the root."""
        self._lines = lines

    @classmethod
    def read(cls, data: Path, root: Path) -> Reach:
        """What a run with `OPTIONS` has left in `data`, of the tree at `root`."""
        known = CoverageData(str(data))
        known.read()
        lines: dict[str, dict[int, Tests]] = {}
        for file in known.measured_files():
            by_line = known.contexts_by_lineno(file)
            lines[file.removeprefix(f"{root}/")] = {
                line: frozenset(test for each in contexts if (test := each.rpartition("|")[0]))
                for line, contexts in by_line.items()
            }
        return cls(lines)

    def of(self, mutant: Mutant) -> Tests:
        """The tests that come to the place that a mutant breaks.

        None are found of what runs only as a module is imported; any test may notice that.
        """
        lines = self._lines.get(mutant.file, {})
        for place in places(mutant.whole, mutant.code):
            tests = frozenset(chain.from_iterable(lines.get(line, ()) for line in place))
            if tests:
                return tests
        return frozenset()


def places(text: str, code: str) -> Iterator[range]:
    """The lines of `code` in `text`, and then those of each statement around it, the innermost first."""
    before, _, _ = text.partition(code)
    first = before.count("\n") + len(code) - len(code.lstrip("\n")) + 1
    last = before.count("\n") + code.rstrip("\n").count("\n") + 1
    yield range(first, last + 1)
    around: defaultdict[int, list[range]] = defaultdict(list)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt) and node.lineno <= first and last <= (node.end_lineno or node.lineno):
            size = (node.end_lineno or node.lineno) - node.lineno
            around[size].append(range(node.lineno, node.lineno + size + 1))
    for size in sorted(around):
        yield from around[size]
