"""Groups and tasks as people and programs are shown them; nothing changes here."""
