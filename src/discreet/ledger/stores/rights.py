"""The tables of a ledger in PostgreSQL, and the few rights that the ledger's role needs.

The administrator who runs the SQL owns the tables. The role may add and read rows; it can neither
change nor remove one.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import LedgerUnavailable

FORMAT = 1
_COLUMNS = {  # the first column of each is its primary key
    "book": "format integer",
    "rows": "number bigint, body text, mac bytea",
    "keys": "charge bigint, sealed bytea",
    "answers": "charge bigint, post bigint, question bytea, answer bytea",
    "contents": "number bigint, content bytea",
}
_GRANTS = {
    "book": "SELECT, UPDATE",  # UPDATE is the right to lock its one row
    "rows": "SELECT, INSERT",
    "keys": "SELECT, INSERT, UPDATE, DELETE",
    "answers": "SELECT, INSERT",
    "contents": "SELECT, INSERT",
}
_TABLE_RIGHTS = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
_FOUND = """
SELECT c.relname::text,
       (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
          FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
       c.relkind = 'r' AND c.relpersistence = 'p' AND NOT c.relrowsecurity AND NOT c.relispartition
         AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid)
         AND NOT EXISTS (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid)
         AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid OR i.inhrelid = c.oid)
         AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attnotnull
                           AND NOT a.attisdropped)
         AND EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid
                       AND i.indkey::text = '1')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
"""
_SUPERUSERS = """
SELECT rolname::text, rolname = session_user FROM pg_roles
WHERE (rolsuper OR rolname IN ('pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program'))
  AND pg_has_role(session_user, oid, 'MEMBER') ORDER BY 2 DESC, 1
"""
_OWNERS = """
SELECT DISTINCT pg_get_userbyid(c.relowner)::text, pg_get_userbyid(c.relowner) = session_user
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND pg_has_role(session_user, c.relowner, 'MEMBER') ORDER BY 2 DESC, 1
"""


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def setup(schema: str, role: str) -> str:
    """Return the SQL that a database's administrator runs once, before `discreet ledger POLICY
    --create`.
    """
    home = quote(schema)
    who = quote(role)
    lines = [f"CREATE SCHEMA {home};"]
    for table, columns in _COLUMNS.items():
        first, *rest = columns.split(", ")
        shape = ", ".join([f"{first} PRIMARY KEY", *(f"{column} NOT NULL" for column in rest)])
        lines.append(f"CREATE TABLE {home}.{table}\n  ({shape});")
    lines += [
        f"CREATE INDEX questions ON {home}.answers (question);",
        f"ALTER TABLE {home}.keys SET (autovacuum_vacuum_scale_factor = 0);",
        f"INSERT INTO {home}.book VALUES ({FORMAT});",
        f"REVOKE ALL ON SCHEMA {home} FROM PUBLIC;",
        f"GRANT USAGE ON SCHEMA {home} TO {who};",
        *(f"GRANT {rights} ON {home}.{table} TO {who};" for table, rights in _GRANTS.items()),
        f"ALTER ROLE {who} SET search_path = {home};",
    ]
    return "\n".join(lines) + "\n"


def require_tables(connection: Any, schema: str, *, name: str) -> None:
    """Refuse tables that are not a ledger's, or that have triggers, rules or the like, which could
    drop rows.
    """
    found = {
        table: (columns, plain)
        for table, columns, plain in connection.execute(_FOUND, [schema]).fetchall()
    }
    if not found:
        raise LedgerUnavailable(
            f"{name} has no tables in its PostgreSQL: let the database's administrator run what "
            "discreet ledger POLICY --setup prints."
        )
    if found != {table: (columns, True) for table, columns in _COLUMNS.items()}:
        raise LedgerUnavailable(
            f"{name} has other tables in its PostgreSQL than a ledger has: restore it from a backup. "
            "Nothing is answered."
        )


def require_few_rights(connection: Any, schema: str, *, name: str) -> None:
    """Refuse a role that could change rows, and name the command that revokes the right."""
    revoke = _revocation(connection, schema)
    if revoke is not None:
        raise LedgerUnavailable(
            f"The role of {name} may do more in its PostgreSQL than add rows. Take that away first: {revoke}"
        )


def _revocation(connection: Any, schema: str) -> str | None:
    """Return the first command that revokes a right which the role has and does not need."""
    [role] = connection.execute("SELECT session_user::text").fetchone()
    who = quote(role)
    for other, itself in connection.execute(_SUPERUSERS).fetchall():
        return f"ALTER ROLE {who} NOSUPERUSER;" if itself else f"REVOKE {quote(other)} FROM {who};"
    [creates] = connection.execute(
        "SELECT rolcreaterole FROM pg_roles WHERE rolname = session_user"
    ).fetchone()
    if creates:
        return f"ALTER ROLE {who} NOCREATEROLE;"
    for owner, itself in connection.execute(_OWNERS, [schema]).fetchall():
        if itself:
            return f"ALTER TABLE ... OWNER TO another role, for each table of {quote(schema)};"
        return f"REVOKE {quote(owner)} FROM {who};"
    home = quote(schema)
    if _holds(connection, "has_schema_privilege(session_user, %s, 'CREATE')", schema):
        return f"REVOKE CREATE ON SCHEMA {home} FROM {who}, PUBLIC;"
    for table, granted in _GRANTS.items():
        for right in _TABLE_RIGHTS:
            has = f"has_table_privilege(session_user, %s, '{right}')"
            if right not in granted and _holds(connection, has, f"{home}.{table}"):
                return f"REVOKE {right} ON {home}.{table} FROM {who}, PUBLIC;"
    return None


def _holds(connection: Any, right: str, thing: str) -> bool:
    return bool(connection.execute(f"SELECT {right}", [thing]).fetchone()[0])
