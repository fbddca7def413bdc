"""What both daemons are watched by: metrics, the lag of the event loop, logs. Imports nothing of ours."""
