from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from assignors.base import Member, Task
from assignors.registry import BUILT_IN, load_assignor
from assignors.weighted import WeightedAssignor

if TYPE_CHECKING:
    import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "assignors.md").read_text()


def test_the_page_tells_of_every_built_in_assignor_and_of_no_other() -> None:
    """The first column of its table."""
    assert set(re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)) == BUILT_IN.keys()


def test_the_example_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a module on the path, named as the page names it."""
    [code] = re.findall(r"^    # herd_rules\.py\n((?:    .*\n|\n)+)", PAGE, re.MULTILINE)
    [spec] = re.findall(r"`--assignor (\w+:\w+)`", PAGE)
    module = f"example_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    assignor = load_assignor(spec.replace("herd_rules", module))
    assert assignor.assign([Member("a"), Member("b")], [Task("t")], {}) == {"a": ["t"]}


def test_the_figures_of_weighted_are_those_of_the_code() -> None:
    """20 % and 11 %."""
    margin = WeightedAssignor.margin
    assert f"at least {margin:.0%} lower".replace("%", " %") in PAGE
    assert f"may be {int(margin / (2 - margin) * 100)} % off" in PAGE
    assert f"{1 - margin} times the highest" in PAGE
