"""Check the rights of the role that runs questions: it may read the snapshots and nothing else. If
it has any other right, opening a snapshot is refused.

Least privilege is a second defence behind our own SQL. The refusal contains the statements that
revoke the surplus rights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.engines.postgres.server import Link

_OURS = r"^discreet_[0-9]+(_empty)?$"
_SYSTEM = (
    "n.nspname IN ('pg_catalog', 'information_schema')"
    " OR n.nspname LIKE 'pg\\_toast%' OR n.nspname LIKE 'pg\\_temp%'"
)
# Each query returns statements that revoke a right; %(ours)s matches the schemas of snapshots.
_EXCESS = (
    # A superuser may do everything: no other rule would find it.
    """SELECT format('ALTER ROLE %%I NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS', rolname)
       FROM pg_roles WHERE rolname = current_user
       AND (rolsuper OR rolcreatedb OR rolcreaterole OR rolreplication OR rolbypassrls)""",
    """SELECT format('REVOKE %%I FROM %%I', g.rolname, current_user) FROM pg_auth_members m
       JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member WHERE r.rolname = current_user""",
    """SELECT format('REVOKE %%s ON DATABASE %%I FROM PUBLIC, %%I', each, current_database(), current_user)
       FROM unnest(ARRAY['CREATE', 'TEMPORARY']) AS each
       WHERE has_database_privilege(current_database(), each)""",
    """SELECT format('REVOKE CREATE ON SCHEMA %%I FROM PUBLIC, %%I', nspname, current_user) FROM pg_namespace
       WHERE has_schema_privilege(oid, 'CREATE') AND nspname NOT LIKE 'pg\\_temp%%'""",
    f"""SELECT format('REVOKE ALL ON %%I.%%I FROM PUBLIC, %%I', n.nspname, c.relname, current_user)
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT ({_SYSTEM.replace("%", "%%")})
       AND has_schema_privilege(n.oid, 'USAGE')
       AND (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
            OR has_any_column_privilege(c.oid, 'INSERT, UPDATE, REFERENCES')
            OR (n.nspname !~ %(ours)s AND has_any_column_privilege(c.oid, 'SELECT')))""",
    f"""SELECT format('REVOKE ALL ON FUNCTION %%s FROM PUBLIC, %%I', p.oid::regprocedure, current_user)
       FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
       WHERE p.prosecdef AND NOT ({_SYSTEM.replace("%", "%%")})
       AND has_schema_privilege(n.oid, 'USAGE') AND has_function_privilege(p.oid, 'EXECUTE')""",
    # Those of Postgres's and of extensions' own that not everybody may call: pg_read_file, lo_export, ...
    """SELECT format('REVOKE ALL ON FUNCTION %%s FROM PUBLIC, %%I', i.objoid::regprocedure, current_user)
       FROM pg_init_privs i WHERE i.classoid = 'pg_proc'::regclass
       AND has_function_privilege(i.objoid, 'EXECUTE')
       AND NOT EXISTS (SELECT FROM aclexplode(i.initprivs) AS a WHERE a.grantee = 0)""",
)
_MOST = 3  # statements that are shown


def require_few_rights(connection: Link) -> None:
    """Raise UsageError if the role of a connection can do more than read snapshots. The message has
    the statements to run.
    """
    statements: list[str] = []
    for sql in _EXCESS:
        rows = connection.execute(sql.encode(), {"ours": _OURS}).fetchall()
        statements += [str(row[0]) for row in rows]
    if statements:
        shown = "; ".join(statements[:_MOST])
        if len(statements) > _MOST:
            shown += f"; and {len(statements) - _MOST} more"
        role = connection.info.user
        raise UsageError(
            f"The role {role} may do more than read snapshots. As the owner of the database, run: {shown}."
        )
