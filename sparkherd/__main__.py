"""`sparkherd` and `python -m sparkherd`: the command line, once it is sure to load our own code."""

from __future__ import annotations

import sys
from typing import Final

from sparkherd.packages import hidden_package

MISCONFIGURED: Final = 2
"""As in `cli.exit_codes`, which cannot be asked yet."""


def main() -> None:
    """Run the command line and exit with its code; a hidden package of ours is one line on stderr."""
    if problem := hidden_package():
        sys.stderr.write(f"sparkherd: {problem}\n")
        sys.exit(MISCONFIGURED)
    from cli.main import main as command_line  # noqa: PLC0415 - not before it is known whose `cli` it is

    command_line()


if __name__ == "__main__":
    main()
