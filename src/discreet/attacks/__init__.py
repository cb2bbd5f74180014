"""Attacks on releases, for auditors and teachers."""
