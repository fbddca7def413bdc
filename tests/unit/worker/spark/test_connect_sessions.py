"""The ids of queries' sessions, which tell the tokens that the queries run under."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from worker.spark.connect.sessions import new_session_id, token_of


@pytest.mark.parametrize("token", [1, 7, 1_795_346_376, 2**32 - 1])
def test_an_id_tells_the_token(token: int) -> None:
    """As RFC 9562 lets one that has a meaning do: it is a UUID of version 8."""
    made = new_session_id(token)
    assert token_of(made) == token
    assert (UUID(made).version, str(UUID(made))) == (8, made)


def test_no_two_are_the_same() -> None:
    """A session that was closed can never be opened again, so a restart needs another."""
    assert len({new_session_id(7) for _ in range(1000)}) == 1000


def test_other_ids_tell_none() -> None:
    """Those of former versions are random; and a token that does not fit is not told in part."""
    assert token_of(str(uuid4())) is None
    for token in (0, 2**32):
        assert token_of(new_session_id(token)) is None
