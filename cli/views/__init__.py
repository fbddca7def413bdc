"""What commands show: tables and lines for people, JSON for scripts, progress on stderr."""
