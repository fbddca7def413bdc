"""The group core: rules without I/O.

`GroupCoordinator.handle(request, ...)` changes one group and returns a `Turn`: the answers to send and
the rows to store, in that order of trust: nothing is answered before its rows are durable.
No clock, socket, logger, `await`, uuid or random number lives in here; all are passed in.
One module a concern; protocol §4 and §5 are the rules. What a group is made of stands here, above it `tasks`,
then `membership`, then `views`, and `loading` and `coordinator` on top: see tests/test_architecture.py.
"""
