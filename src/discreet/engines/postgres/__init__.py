"""Postgres: snapshots as schemas of a database, which a role that can do nothing else reads."""
