"""Tasks of one file in one process, without a manager (`sparkherd run`), as Kafka Connect's standalone mode.

What runs tasks, the engine and the sinks are the worker's own. `local_manager` stands in for the manager that
grants tasks, `token_file` remembers the fencing tokens from run to run.
"""
