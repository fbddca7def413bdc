"""The manager daemon: group coordination, task ownership, storage and the HTTP front."""
