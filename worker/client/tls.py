"""How a worker, or the command line, checks a manager's certificate, and which one of its own it shows."""

from __future__ import annotations

import ssl

from protocol.errors import StartupError


def client_tls(authority: str | None, cert: str | None, key: str | None) -> ssl.SSLContext | None:
    """The settings `--tls-ca`, `--tls-cert` and `--tls-key` together; None if none is given.

    Raises:
        StartupError: a file is of no use, or a half is missing; the text names the setting.
    """
    if (cert is None) != (key is None):
        raise StartupError("--tls-cert and --tls-key go together")
    if authority is None and cert is None:
        return None
    try:
        context = ssl.create_default_context(cafile=authority)
    except (OSError, ValueError) as error:
        raise StartupError(f"--tls-ca {authority}: {_why(error)}") from None
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, password=_no_password)
        except (OSError, ValueError) as error:
            raise StartupError(f"--tls-cert {cert}, --tls-key {key}: {_why(error)}") from None
    return context


def _no_password() -> bytes:
    """A key with a pass phrase would have the process ask for it on the terminal."""
    raise ValueError("the key has a pass phrase; give one without")


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return f"not usable ({(error.reason or 'no certificate or key in it').lower().replace('_', ' ')})"
    return getattr(error, "strerror", None) or str(error)
