"""Protocols for questions that the same person answers repeatedly."""
