"""The key that signs what is sent: named by reference, read once, shown nowhere."""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.errors import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping

SETTING = "--webhook-secret"
ENCODED = b"whsec_"
"""How a key begins that is base64 after that, for receivers that use a library of Standard Webhooks."""
MAX_BYTES = 4096


def key_of(found: bytes) -> bytes:
    """The key as it was written, or as base64 after `whsec_`; raises `ValueError` for what is not base64."""
    if not found.startswith(ENCODED):
        return found
    return base64.b64decode(found.removeprefix(ENCODED), validate=True)


class Secret:
    """A key; neither its text nor its representation has it."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def sign(self, message: bytes) -> str:
        """The HMAC-SHA256 of `message`, in base64."""
        return base64.b64encode(hmac.digest(self._key, message, "sha256")).decode()


def read_secret(reference: str, environ: Mapping[str, str] = os.environ) -> Secret:
    """The key that `reference` leads to, without white space around it.

    Args:
        reference: `file:PATH` or `env:NAME`.
        environ: where names are looked up.

    Raises:
        StartupError: there is none. The text does not repeat the reference: a shell that was given `env:$KEY`
            has put the key in its place.
    """
    kind, _, place = reference.partition(":")
    found = _from_file(place) if kind == "file" else _from_environment(place, environ)
    if not found:
        raise StartupError(f"{SETTING}: what it names is empty")
    return Secret(_decoded(found))


def _from_file(place: str) -> bytes:
    try:
        with Path(place).open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise StartupError(
            f"{SETTING}: the file it names cannot be read: {getattr(error, 'strerror', error)}"
        ) from None
    if len(found) > MAX_BYTES:
        raise StartupError(f"{SETTING}: the file it names has more than {MAX_BYTES} bytes")
    return found.strip()


def _from_environment(name: str, environ: Mapping[str, str]) -> bytes:
    if name not in environ:
        raise StartupError(f"{SETTING}: the variable it names does not exist")
    return environ[name].strip().encode(errors="surrogateescape")


def _decoded(found: bytes) -> bytes:
    try:
        return key_of(found)
    except binascii.Error:
        raise StartupError(f"{SETTING}: what follows whsec_ in the key is not base64") from None
