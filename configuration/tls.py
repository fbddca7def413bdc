"""What is common to all who load certificates and keys: no pass phrases, and errors in plain words."""

from __future__ import annotations

import ssl


def no_password() -> bytes:
    """A key with a pass phrase would have the process ask for it on the terminal."""
    raise ValueError("the key has a pass phrase; give one without")


def why_unusable(error: Exception) -> str:
    """What is wrong with a file of certificates or keys that could not be loaded."""
    if isinstance(error, ssl.SSLError):
        return f"not usable ({(error.reason or 'no certificate or key in it').lower().replace('_', ' ')})"
    return getattr(error, "strerror", None) or str(error)
