"""Limit how long work may take, interrupt it, and decide when its answer leaves."""
