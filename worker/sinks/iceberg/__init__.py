"""The fenced Iceberg sink: a batch is one commit, at the head at which the fence was read."""
