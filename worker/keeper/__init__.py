"""Keeping the assigned tasks running: claims, one life a task, restarts, reports, releases (architecture §3).

`plan` and `restarts` are rules without I/O. `task` is one task's life, an asyncio task of its own, so that a
slow one delays nobody. `claims`, `releases` and `reports` speak with the manager in batches. `keeper` ties
them together for the membership.
"""
