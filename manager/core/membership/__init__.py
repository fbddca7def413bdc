"""Who is in a group, and the rebalances that follow from it: Kafka's rules (protocol §3, §4)."""
