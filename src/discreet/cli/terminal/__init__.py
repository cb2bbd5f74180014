"""A session in a terminal: the shell, its keys, and what a Tab completes."""
