"""The promises of a fenced sink as tests, for sinks of ours and of anybody's (docs/sinks.md)."""
