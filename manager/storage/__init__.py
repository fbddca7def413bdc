"""Where groups are kept: rows in, rows out, one transaction a turn. SQLAlchemy Core, any async driver."""
