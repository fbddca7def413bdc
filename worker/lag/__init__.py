"""How far tasks are behind what they read: told by their owners, and by the leader for tasks without one."""
