from __future__ import annotations

from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from assignors import registry
from assignors.base import Member, Task
from assignors.registry import AssignorError, available, load_assignor

if TYPE_CHECKING:
    from pathlib import Path

PLUG_IN = """
    from assignors.base import Assignor

    class FirstTakesAll(Assignor):
        name = "first-takes-all"
        kind = "eager"

        def assign(self, members, tasks, current):
            return {members[0].member_id: [task.name for task in tasks]}

    class Nameless(Assignor):
        def assign(self, members, tasks, current):
            return {}

    class Lazy(Assignor):
        name = "lazy"

    class Odd(FirstTakesAll):
        kind = "odd"

    class Failing(FirstTakesAll):
        def __init__(self):
            raise RuntimeError("no\\nway")

    class Leaving(FirstTakesAll):
        def __init__(self):
            raise SystemExit("no license")

    class Renamed(FirstTakesAll):
        def __init__(self):
            self.name = []

    class Refusing(FirstTakesAll):
        def __init__(self):
            from assignors.registry import AssignorError
            raise AssignorError("no license\\nat postgresql://u:geheim@db/x")

    class Oddly:
        def __repr__(self):
            raise SystemExit("shown")

    class Strange(FirstTakesAll):
        kind = Oddly()

    class Long(FirstTakesAll):
        kind = "odd" * 1000

    class Odder(type(Assignor)):
        @property
        def kind(cls):
            raise SystemExit(7)

    class Oddest(FirstTakesAll, metaclass=Odder):
        pass

    not_a_class = 5

    def __getattr__(name):
        if name == "Ending":
            raise SystemExit("usage: herder")
        if name == "Interrupted":
            raise KeyboardInterrupt("enough")
        raise AttributeError(f"the module has no attribute '{name}'")
"""


@pytest.fixture
def herder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package outside this repository, installed as pip would; the name of its module."""
    module = f"herder_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(dedent(PLUG_IN))
    info = tmp_path / "herder-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: herder\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[sparkherd.assignors]\nfirst = {module}:FirstTakesAll\n")
    monkeypatch.syspath_prepend(tmp_path)
    return module


@pytest.mark.parametrize("spec", ["first", "{}:FirstTakesAll"])
def test_an_assignor_from_another_package_is_found_and_used(herder: str, spec: str) -> None:
    """By its entry point, and by where it is without any."""
    assignor = load_assignor(spec.format(herder))
    assert (assignor.name, assignor.kind) == ("first-takes-all", "eager")
    assert assignor.assign([Member("a")], [Task("t")], {}) == {"a": ["t"]}


def test_what_is_installed_can_be_listed(herder: str) -> None:
    """Built-in ones and plug-ins alike."""
    offered = available()
    assert offered["first"] == f"{herder}:FirstTakesAll"
    assert offered["sticky"] == "assignors.sticky:StickyAssignor"


def test_built_in_assignors_need_no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a checkout has on record of itself may be older than its code, or missing."""
    monkeypatch.setattr(registry, "entry_points", lambda **_: ())
    assert list(available()) == ["range", "roundrobin", "sticky", "weighted"]
    assert [load_assignor(name).name for name in available()] == list(available())


def test_a_name_that_two_packages_use_must_be_told_apart(herder: str, tmp_path: Path) -> None:
    """Which of the two would be a matter of luck."""
    other = tmp_path / "rival-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text(f"[sparkherd.assignors]\nfirst = {herder}:Odd\n")
    with pytest.raises(
        AssignorError, match=f"'first' is ambiguous: name one of {herder}:First.*, {herder}:Odd"
    ):
        load_assignor("first")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sticki", "there is no assignor 'sticki': installed are .*roundrobin.*sticky"),
        ("", "there is no assignor ''"),
        ("{}:", "is not of the form module:Class"),
        ("no.such.module:X", "cannot be imported: ModuleNotFoundError: No module named 'no'"),
        ("{}:Missing", "cannot be imported: AttributeError: .* has no attribute 'Missing'"),
        ("{}:not_a_class", "is no subclass of sparkherd.Assignor"),
        ("{}:Nameless", "lacks an assign method or a name"),
        ("{}:Lazy", "lacks an assign method or a name"),
        ("{}:Odd", "is of kind 'odd', not eager or cooperative"),
        ("{}:Failing", "cannot be made: RuntimeError: no$"),
        ("{}:Leaving", "cannot be made: SystemExit: no license$"),
        ("{}:Renamed", "has a name that is no text$"),
        ("{}:Refusing", "cannot be made: AssignorError: no license$"),
        ("{}:Strange", "is of kind 'it cannot be shown', not eager or cooperative$"),
        ("{}:Long", "is of kind '(odd){16}od', not eager or cooperative$"),
        ("{}:Oddest", "cannot be made: SystemExit: 7$"),
        ("{}:Ending", "cannot be imported: SystemExit: usage: herder$"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line(herder: str, spec: str, message: str) -> None:
    """The line names the assignor and what is wrong with it."""
    with pytest.raises(AssignorError, match=message) as refusal:
        load_assignor(spec.format(herder))
    assert "\n" not in str(refusal.value)


def test_ctrl_c_ends_an_import(herder: str) -> None:
    """Which may take long; in a daemon that is up it is the module's own doing."""
    with pytest.raises(KeyboardInterrupt):
        load_assignor(f"{herder}:Interrupted")


async def test_a_module_that_interrupts_is_refused_where_signals_come_otherwise(herder: str) -> None:
    """In an event loop."""
    with pytest.raises(AssignorError, match=r"cannot be imported: KeyboardInterrupt: enough$"):
        load_assignor(f"{herder}:Interrupted")
