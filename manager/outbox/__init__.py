"""What the outside is told: followers of the log, webhooks, and how long it is kept (docs/events.md)."""
