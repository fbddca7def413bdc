"""The fenced Iceberg sink: a batch is written to a branch of its own, and published by fast-forward."""
