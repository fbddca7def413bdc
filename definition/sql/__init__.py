"""What can be told of a task's SQL without Spark (PROTOCOL.md §6)."""
