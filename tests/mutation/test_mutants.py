from __future__ import annotations

import builtins
from symtable import symtable
from typing import TYPE_CHECKING

import pytest

from tests.mutation.mutants import LISTS, ROOT, Mutant, read_mutants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from symtable import SymbolTable

MUTANTS = [mutant for name in LISTS for mutant in read_mutants(name)]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_mutant_fits_the_code(mutant: Mutant) -> None:
    """The list follows the code: each mutant still changes one place, into something that compiles."""
    text = (ROOT / mutant.file).read_text()
    compile(mutant.applied_to(text), mutant.file, "exec")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_mutant_breaks_a_rule_and_not_the_program(mutant: Mutant) -> None:
    """Every name it uses exists: any test catches a NameError, which says nothing about the rule."""
    module = symtable(mutant.applied_to((ROOT / mutant.file).read_text()), mutant.file, "exec")
    made = {each.get_name() for each in module.get_symbols() if each.is_assigned() or each.is_imported()}
    assert {*_globals_of(module)} <= {*made, *dir(builtins), "__name__"}


def _globals_of(scope: SymbolTable) -> Iterator[str]:
    yield from (symbol.get_name() for symbol in scope.get_symbols() if symbol.is_global())
    for child in scope.get_children():
        yield from _globals_of(child)


def test_there_are_enough_of_them() -> None:
    """Twenty rules at the least, no two the same."""
    assert len(read_mutants("rules")) >= 20
    assert len({(mutant.file, mutant.broken, mutant.code) for mutant in MUTANTS}) == len(MUTANTS)
