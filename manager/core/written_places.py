"""Places in lists as clients are given them, as `next`, and bring them back: opaque texts for addresses."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

Place = TypeVar("Place", bound=tuple[object, ...])


def written(place: Place) -> str:
    """A text that fits into an address."""
    return urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def read_place(text: str, kind: type[Place]) -> Place | None:
    """The place that was `written`; None if it is none of that `kind`."""
    try:
        padded = text.encode() + b"=" * (-len(text) % 4)
        return msgspec.json.decode(urlsafe_b64decode(padded), type=kind)
    except (binascii.Error, msgspec.MsgspecError, UnicodeError):
        return None
