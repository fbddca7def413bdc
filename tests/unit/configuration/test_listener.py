from __future__ import annotations

import socket

import pytest

from configuration.listener import listen
from protocol.errors import StartupError


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:0", "[::1]:0", "127.8.9.1:0"])
def test_this_machine_may_be_listened_on(address: str) -> None:
    """By any of its names."""
    with listen("--status-listen", address, loopback_only=True) as listener:
        assert listener.getsockname()[1] > 0


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "10.0.0.1:8471"])
def test_nothing_else_may(address: str) -> None:
    """Nobody is asked who they are; one line that says what to write instead."""
    with pytest.raises(StartupError, match=r"127\.0\.0\.1:PORT") as refused:
        listen("--status-listen", address, loopback_only=True)
    assert str(refused.value).startswith(f"--status-listen {address}: ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("address", ["no.such.host.invalid:1", "127.0.0.1:99999", "a..b:0"])
def test_what_is_no_address_is_one_line_too(address: str) -> None:
    """That names the setting."""
    with pytest.raises(StartupError, match="--status-listen"):
        listen("--status-listen", address, loopback_only=True)


def test_a_port_that_is_taken_is_one_line_too() -> None:
    """That names the setting."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartupError, match=f"--status-listen 127.0.0.1:{port}: Address already in use"):
            listen("--status-listen", f"127.0.0.1:{port}")


def test_a_manager_may_listen_everywhere() -> None:
    """Only an endpoint that asks nobody who they are is for this machine."""
    with listen("--listen", "0.0.0.0:0") as listener:
        assert listener.getsockname()[0] == "0.0.0.0"
