"""Rules of alarms without I/O: what a rule is about, when it holds, when it is told (docs/alarms.md)."""
