"""Joins of private rows with noisy results, which run after noise."""
