"""What a manager proves itself by, and what it asks of those who connect."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from configuration.tls import no_password, why_unusable
from protocol.errors import StartupError

if TYPE_CHECKING:
    from manager.settings import ManagerSettings


class Certificate:
    """The manager's TLS; the certificate can be read again while it serves."""

    def __init__(self, cert: str, key: str, client_ca: str | None) -> None:
        """Raises `StartupError` when a file is of no use; the text names the setting."""
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._cert, self._key = cert, key
        self.reload()
        if client_ca is not None:
            # Asked for, and needed by members only: a browser has none.
            self.context.verify_mode = ssl.CERT_OPTIONAL
            _trust(self.context, client_ca, "--tls-client-ca")

    def reload(self) -> None:
        """Connections from now on see what is in the files by now; raises `StartupError`."""
        try:
            self.context.load_cert_chain(self._cert, self._key, password=no_password)
        except (OSError, ValueError) as error:
            raise StartupError(
                f"--tls-cert {self._cert}, --tls-key {self._key}: {why_unusable(error)}"
            ) from None


def certificate_of(settings: ManagerSettings) -> Certificate | None:
    """The one that the settings name; None for plain HTTP.

    Raises:
        StartupError: it cannot be used, or half of it is missing.
    """
    cert, key = settings.tls_cert, settings.tls_key
    if cert is None and key is None:
        if settings.tls_client_ca is not None:
            raise StartupError("--tls-client-ca goes with --tls-cert and --tls-key")
        return None
    if cert is None or key is None:
        raise StartupError("--tls-cert and --tls-key go together")
    return Certificate(cert, key, settings.tls_client_ca)


def trust_in_managers(settings: ManagerSettings) -> ssl.SSLContext:
    """How other managers' certificates are checked; raises `StartupError`."""
    context = ssl.create_default_context()
    if settings.tls_ca is not None:
        _trust(context, settings.tls_ca, "--tls-ca")
    return context


def _trust(context: ssl.SSLContext, authority: str, setting: str) -> None:
    try:
        context.load_verify_locations(authority)
    except (OSError, ValueError) as error:
        raise StartupError(f"{setting} {authority}: {why_unusable(error)}") from None
