from __future__ import annotations

import pytest

from definition.scheduling import Scheduling
from worker.query_engine import QueryError
from worker.spark.connect.query_session import NOT_ON_CONNECT, ConnectQuerySession


def test_a_share_of_a_server_is_refused_and_says_where_it_would_count() -> None:
    """No client can reach the server's pools; a task that asks for none is not concerned."""
    session = ConnectQuerySession.__new__(ConnectQuerySession)  # what it refuses hangs on nothing of its own
    session.schedule(None)
    with pytest.raises(QueryError) as caught:
        session.schedule(Scheduling(weight=8))
    assert caught.value.permanent
    assert str(caught.value) == f"scheduling: {NOT_ON_CONNECT}"
