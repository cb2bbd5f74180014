"""Text to syntax: parse, and write other spellings of the same thing one way."""
