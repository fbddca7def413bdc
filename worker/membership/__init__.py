"""Being a member of a group, as rules without I/O: events in, effects out (protocol §7).

`states` has the states and their moves, `reactions` the table of what each answer leads to, `core` runs
both. Whoever carries the effects out (`worker.member`) feeds what came of them back in as events.
"""
