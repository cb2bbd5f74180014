"""How long work may take, what stops it, and at which time its answer leaves."""
