"""The engine Postgres: each snapshot is a schema of a database. Questions read it as a role that
has no other rights.
"""
