"""Spark, kept out of the event loop: one warm session a worker, one `newSession()` a task (architecture §3).

`worker.spark.settings` is what others may import without PySpark; `worker.spark.engine` is the entrance.
"""
