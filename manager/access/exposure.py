"""Whether a manager may listen where it was told to: beyond its own machine, not without TLS and tokens."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from protocol.errors import StartupError

OVERRIDE = "--allow-insecure"


@dataclass(frozen=True, slots=True)
class Exposure:
    """Where a manager listens.

    Attributes:
        listen: as it was told.
        address: what that has become, an IP address.
        allowed: whether whoever started it has accepted what could happen.
    """

    listen: str
    address: str
    allowed: bool = False

    @property
    def is_harmless(self) -> bool:
        """Whether only processes of this machine reach it, or it was accepted that others do."""
        return self.allowed or ipaddress.ip_address(self.address.partition("%")[0]).is_loopback

    def require_tls(self, *, has_tls: bool) -> None:
        """To be asked before anything is touched; raises `StartupError`."""
        if not has_tls and not self.is_harmless:
            raise StartupError(
                f"--listen {self.listen}: other machines could read and send everything; give --tls-cert and"
                f" --tls-key, listen on 127.0.0.1, or accept that with {OVERRIDE}"
            )

    def require_tokens(self, *, has_tokens: bool) -> None:
        """To be asked before anything is served; raises `StartupError`."""
        if not has_tokens and not self.is_harmless:
            raise StartupError(
                f"--listen {self.listen}: other machines could do everything, for there is no token yet; make"
                " one with `sparkherd tokens create --role admin NAME`, listen on 127.0.0.1, or accept that"
                f" with {OVERRIDE}"
            )
