"""What a value of one row may be: numbers, dates, texts and flags, each with its public domain."""
