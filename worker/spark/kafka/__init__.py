"""A task's Kafka sources beside Spark: brokers asked, offsets of the checkpoint, lag, consumer groups."""
