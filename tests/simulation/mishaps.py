"""How often the queries of a history go wrong, and for how long."""

from __future__ import annotations

POISON = "poison"
"""The task that kills its workers, in histories that have one."""
POISON_MS = (50, 500)
"""How long after its grant it does."""
STUCK = 0.05
"""How often a query does not stop when it is told to, and nobody is told that it did not."""
LEFT = 0.1
"""How often a query with a fence is left running for its next owner, at a server that outlives workers."""
LEFT_MS = (100, 6000)
"""For how long, if none takes it over."""
HANGS = 0.1
"""How often a sink does not answer whoever settles a task."""
HANGS_MS = (200, 6000)
"""For how long; the patience with a worker may end before."""
