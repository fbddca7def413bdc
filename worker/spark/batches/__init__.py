"""A micro-batch on its way from Spark into a sink: the gate it goes through, and what is left out of it."""
