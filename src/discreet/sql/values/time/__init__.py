"""Dates and timestamps: as values, in functions, moved, and as texts."""
