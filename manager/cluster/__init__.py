"""Managers that share the groups, and take over from each other.

A group belongs to a *slot* (`slots`), a slot to one manager under a *lease*, and every change of hands raises
the slot's *epoch* (`held_slots`). These are rules without I/O; `slot_controller` has them carried out: it
renews the lease, takes slots and gives them up, by the statements of `manager.storage.lease_table`.

Whether a manager is alive is a guess, and may be wrong. What makes it harmless: each transaction that writes
rows of a slot carries the slot's epoch, and an older one writes nothing.
"""
