"""Running the tasks that are assigned: who owns which, one life a task, what the manager is told.

`runner` ties the rest together for the membership. `exchange` claims, releases and reports. `life` is one
task from its grant to its end, an asyncio task of its own, so that a slow one delays nobody. `ownership`,
`grants`, `restarts` and the rule in `orphans` do no I/O.
"""
