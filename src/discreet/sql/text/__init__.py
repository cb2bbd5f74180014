"""Parse the text of a question, and rewrite the many spellings of one thing to one."""
