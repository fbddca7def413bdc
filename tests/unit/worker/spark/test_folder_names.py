from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from protocol.names import MAX_NAME_LENGTH
from worker.spark.folder_names import MOST_BYTES, folder_name

if TYPE_CHECKING:
    from pathlib import Path

LATER = "~after~1795346403"
RESET = "~1795346403"
LONGEST = "x" * (MAX_NAME_LENGTH - 1)


@pytest.mark.parametrize("ending", ["", RESET, "~session"])
def test_a_name_that_fits_is_as_ever(ending: str) -> None:
    """Whatever is there already is found there: up to the last byte that a file system takes."""
    for task in ("delays", "delays" + LATER, "y" * (MOST_BYTES - len(ending))):
        assert folder_name(task, ending) == task + ending


def test_the_longest_names_have_folders_of_their_own(tmp_path: Path) -> None:
    """Two tasks, later ones of their names, and resets and sessions of them all: no two share one."""
    tasks = [LONGEST + last + later for last, later in product("ab", ("", LATER, LATER + "4"))]
    names = [folder_name(task, ending) for task, ending in product(tasks, ("", RESET, "~session"))]
    for name in names:
        (tmp_path / name).mkdir()
    assert len(set(names)) == len(names) == 18
    assert all(name.endswith("~session") for name in names[2::3])
