"""How many connections one address may have."""

from __future__ import annotations

from manager.http.front.limits import Peers


def test_one_too_many_is_refused_until_one_goes() -> None:
    """Others are not concerned."""
    peers = Peers(2)
    assert [peers.enter("192.0.2.1") for _ in range(3)] == [True, True, False]
    assert peers.enter("192.0.2.2")
    peers.leave("192.0.2.1")
    peers.leave("192.0.2.1")
    assert peers.enter("192.0.2.1")


def test_the_own_machine_has_no_limit() -> None:
    """Nor has a Unix socket; what is gone is forgotten."""
    peers = Peers(1)
    for address in ("127.0.0.1", "::1", ""):
        assert [peers.enter(address) for _ in range(3)] == [True] * 3
        for _ in range(3):
            peers.leave(address)
    assert not peers._open
