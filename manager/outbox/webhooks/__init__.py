"""Telling other systems: each event once at least, in order, signed; a dead one delays nobody else."""
