"""What can be told of a task's SQL without Spark (protocol §6)."""
