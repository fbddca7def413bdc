"""Task files (`tasks.yaml`): read, expanded, and compared with the tasks of a group."""
