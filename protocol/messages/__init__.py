"""Request and response bodies, one module a concern; field names are those of PROTOCOL.md §3 and §5."""
