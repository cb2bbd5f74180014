"""Values of one row: numbers, dates, texts and flags, each with its public domain."""
