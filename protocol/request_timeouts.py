"""How long an answer is waited for: by who asks, and by a manager that forwards. One rule for both.

The work grows with what is asked for: a list of tasks is checked definition by definition. Whoever asks is
more patient than a manager in between, and so hears from it what has become of the request.
"""

from __future__ import annotations

from typing import Final

ANY_WORK_S: Final = 20.0
BYTES_A_SECOND: Final = 16_384
"""What the busiest machine gets through of a body; SQL of the worst kind is read at four times that."""
WAY_S: Final = 10.0


def work_s(size: int) -> float:
    """How many seconds the manager that has the group may take for a body of `size` bytes."""
    return ANY_WORK_S + size / BYTES_A_SECOND


def client_wait_s(size: int) -> float:
    """How many seconds whoever sends a body of `size` bytes waits for the answer, forwarded or not."""
    return work_s(size) + WAY_S
