"""`sparkherd demo`: a herd on real data loses a worker and no row."""
