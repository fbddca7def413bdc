"""The worker daemon: joins a group, holds one Spark session, runs the streaming queries it is given."""
