"""Whether the packages that Python would load for ours are ours; nothing of them may be imported here.

They have plain names (`worker`, `cli`, ...). One of the user's of the same name that comes first on Python's
path, as with PYTHONPATH, would be taken for ours.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PACKAGES: Final = (
    "assignors",
    "cli",
    "configuration",
    "definition",
    "manager",
    "protocol",
    "telemetry",
    "worker",
)


def hidden_package() -> str | None:
    """What to tell if Python would load a package that is not ours for one of our names; else None."""
    ours = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        found = _place(find_spec(name))
        if found != ours / name:
            return _explained(name, found, ours / name)
    return None


def _place(spec: ModuleSpec | None) -> Path | None:
    """The folder of a package, the file of a module; None of what is nowhere."""
    if spec is None:
        return None
    folders = list(spec.submodule_search_locations or ())
    place = folders[0] if folders else spec.origin
    return None if place is None else Path(place).resolve()


def _explained(name: str, found: Path | None, ours: Path) -> str:
    if found is None:
        return f"its package {name} is missing ({ours}); install sparkherd anew"
    return (
        f"{found} hides the package {name} of sparkherd ({ours}):"
        " rename it, or take its folder off PYTHONPATH"
    )
