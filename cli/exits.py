"""The exit codes of `sparkherd`."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130
