from __future__ import annotations

import pytest

from tests.mutation.mutants import LISTS, ROOT, Mutant, read_mutants

MUTANTS = [mutant for name in LISTS for mutant in read_mutants(name)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    """The list follows the code: each mutant still changes one place, into something that compiles."""
    text = (ROOT / mutant.file).read_text()
    compile(mutant.applied_to(text), mutant.file, "exec")


def test_there_are_enough_of_them() -> None:
    """Twenty rules at the least, no two the same."""
    assert len(read_mutants("rules")) >= 20
    assert len({(mutant.file, mutant.broken, mutant.code) for mutant in MUTANTS}) == len(MUTANTS)
