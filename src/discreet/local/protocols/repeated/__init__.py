"""Protocols that ask the same person again and again."""
