"""The core on one event loop: parked replies, timers, connections, one transaction a turn."""
