"""A socket at the address that a setting names, had before anything else is touched."""

from __future__ import annotations

import socket
from ipaddress import ip_address

from protocol.errors import StartupError

MAX_PORT = 65_535


def listen(setting: str, address: str, *, loopback_only: bool = False) -> socket.socket:
    """Bind a socket.

    Args:
        setting: the flag that names the address, for the error.
        address: `HOST:PORT`; port 0 takes a free one.
        loopback_only: whether it must be an address of this machine only.

    Raises:
        StartupError: the address cannot be had, or may not be.
    """
    host, port = address.rsplit(":", 1)
    try:
        found = socket.getaddrinfo(host.strip("[]"), _port(port), type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        if loopback_only:
            _require_loopback(setting, address, str(place[0]))
        listener = socket.socket(family, kind, protocol)
    except (OSError, OverflowError, UnicodeError) as error:
        raise StartupError(f"{setting} {address}: {error}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except (OSError, OverflowError) as error:
        listener.close()
        raise StartupError(f"{setting} {address}: {getattr(error, 'strerror', error)}") from error
    return listener


def _port(text: str) -> int:
    """The resolver would take any number, and cut it to 16 bits."""
    if int(text) > MAX_PORT:
        raise OverflowError(f"a port is at most {MAX_PORT}")
    return int(text)


def _require_loopback(setting: str, address: str, host: str) -> None:
    if not ip_address(host).is_loopback:
        raise StartupError(
            f"{setting} {address}: nobody is asked who they are there, so it must be an address of this"
            " machine only, such as 127.0.0.1:PORT"
        )
