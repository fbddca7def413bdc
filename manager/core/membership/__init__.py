"""Who is in a group, and the rebalances that follow from it: Kafka's rules (PROTOCOL.md §3, §4)."""
