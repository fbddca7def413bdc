"""What can be asked of a manager, a module each subject."""
