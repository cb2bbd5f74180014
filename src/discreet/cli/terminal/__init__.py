"""The interactive shell, its line editing, and completion by the Tab key."""
