"""The console: what the manager shows to a browser, rendered here, nothing fetched from elsewhere."""
