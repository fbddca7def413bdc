from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from manager.core.member import Connection
from manager.http.front.reading import host_of


def test_the_address_is_the_connection_s() -> None:
    """A socket that its peer has reset does not know it any more, and aiohttp asks the socket."""
    request: Any = SimpleNamespace(link=Connection(), remote=None)
    request.link.host = "192.0.2.1"
    assert host_of(request) == "192.0.2.1"
