"""Tasks of one file in one process, without a manager (`sparkherd run`), as Kafka Connect's standalone mode.

The keeper, the executor and the sinks are the worker's own; `manager` stands in for the manager that grants
tasks, `tokens` remembers the fencing tokens from run to run, `ending` says when there is nothing left to do.
"""
