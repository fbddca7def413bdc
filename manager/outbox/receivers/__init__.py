"""People who are told of alarms, and the systems by which they are (docs/alarm-receivers.md)."""
