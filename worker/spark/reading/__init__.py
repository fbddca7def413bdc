"""What a definition reads as frames of Spark: files, Kafka's values, tables, databases."""
