"""Rows that are put aside: what they are in a place, and the places that have them (protocol §6)."""
