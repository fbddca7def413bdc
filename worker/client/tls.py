"""How a worker, or the command line, checks a manager's certificate, and which one of its own it shows."""

from __future__ import annotations

import ssl

from configuration.tls import no_password, why_unusable
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
        raise StartupError(f"--tls-ca {authority}: {why_unusable(error)}") from None
    if cert is not None:
        try:
            context.load_cert_chain(cert, key, password=no_password)
        except (OSError, ValueError) as error:
            raise StartupError(f"--tls-cert {cert}, --tls-key {key}: {why_unusable(error)}") from None
    return context
