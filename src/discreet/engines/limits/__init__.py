"""Limits of time: interrupt work that takes too long, and decide when its answer leaves."""
