"""The worker daemon: joins a group, and runs the streaming queries it is given."""
