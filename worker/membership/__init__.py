"""Being a member of a group (protocol §7), the rules without I/O: events in, effects out.

`states` has the states and their moves, `reactions` the table of what each answer leads to,
`state_machine` runs both, and `events` is what it takes and gives. `member` carries the effects out and feeds
what came of them back in as events, `leader` has an assignor decide when this member leads, `draining` moves
its tasks away before it leaves.
"""
