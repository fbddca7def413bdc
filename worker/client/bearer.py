"""The token that a worker, or the command line, shows to managers: from a file or the environment.

Never from a flag: everybody on the machine can read those of a process.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

VARIABLE: Final = "SPARKHERD_TOKEN"
MAX_LENGTH: Final = 1000


class Bearer:
    """Headers with the token; a file is read again when the token is not accepted any more."""

    def __init__(self, token: str | None = None, file: str | None = None) -> None:
        self._token = token
        self._file = file

    @property
    def headers(self) -> dict[str, str]:
        """What goes with every request."""
        return {} if self._token is None else {"Authorization": f"Bearer {self._token}"}

    def renew(self) -> bool:
        """Whether there is another token by now: somebody may have put a new one into the file."""
        if self._file is None:
            return False
        try:
            token = _from_file(self._file)
        except StartupError:
            return False
        is_new = token != self._token
        self._token = token
        return is_new


def find_token(file: str | None, environ: Mapping[str, str] = os.environ) -> Bearer:
    """The token in `file`, else in the environment, else none.

    Raises:
        StartupError: the file cannot be read, or what is found is no token; the text does not repeat it.
    """
    if file is not None:
        return Bearer(_from_file(file), file)
    if (token := environ.get(VARIABLE, "").strip()) == "":
        return Bearer()
    return Bearer(_checked(token, VARIABLE))


def take_token(file: str | None, environ: MutableMapping[str, str] = os.environ) -> Bearer:
    """Find the token and remove its variable: neither Spark nor the code of tasks is to find it there."""
    bearer = find_token(file, environ)
    environ.pop(VARIABLE, None)
    return bearer


def _from_file(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            text = opened.read(MAX_LENGTH + 1)
    except OSError as error:
        raise StartupError(f"--token-file {file} cannot be read: {error.strerror}") from None
    return _checked(text.decode("ascii", errors="replace").strip(), f"--token-file {file}")


def _checked(token: str, place: str) -> str:
    """Whatever would break out of its header is refused."""
    if not token or len(token) > MAX_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise StartupError(f"{place} holds no token as `sparkherd tokens create` prints it")
    return token
