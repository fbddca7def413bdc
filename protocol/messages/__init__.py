"""Request and response bodies, one module a concern; field names are those of protocol §3 and §5."""
