"""Where rows go, exactly once: sinks fenced by a task's token and Spark's batch id (architecture §3).

Nothing here imports Spark, so every rule of a sink can be tried without a JVM.
"""
