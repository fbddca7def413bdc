"""Ports of the demo's brokers."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from cli.demo import free_ports as module
from cli.demo.free_ports import PORTS, free_ports

HOST = "127.0.0.1"


def test_they_are_not_those_of_connections() -> None:
    """Each another one, which no system gives to whoever connects."""
    found = free_ports(HOST, 20)
    assert len(set(found)) == 20
    assert set(found) <= set(PORTS)
    assert max(PORTS) < 32_768


def test_what_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """And if there are not enough, that is said."""
    first, second = free_ports(HOST, 2)
    monkeypatch.setattr(module, "PORTS", (first, second))
    with closing(socket.socket()) as taken:
        taken.bind((HOST, first))
        taken.listen()
        assert free_ports(HOST, 1) == [second]
        with pytest.raises(OSError, match=f"^of the ports {first} to {second} of {HOST} only 1 are free$"):
            free_ports(HOST, 2)
