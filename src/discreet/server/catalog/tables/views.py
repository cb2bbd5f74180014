"""The views of pg_catalog and information_schema, computed once from the catalog's tables.

They are filled by name, so columns that are not named here are NULL.
"""

from __future__ import annotations

_KINDS = "CASE {0} WHEN 'r' THEN 'BASE TABLE' WHEN 'v' THEN 'VIEW' END"
_FLAG = "CASE WHEN {0} THEN 'YES' ELSE 'NO' END"
_READ = "('SELECT')"


def fill_views(database: str) -> tuple[str, ...]:
    """Return INSERT statements that fill the views in the catalog's own database. Its tables must
    be filled before.
    """
    here = "'" + database.replace("'", "''") + "'"
    return tuple(text.replace("$DATABASE", here) for text in _VIEWS)


_NAMED = "FROM main.pg_class c JOIN main.pg_namespace n ON n.oid = c.relnamespace"
_KEYS = (
    "FROM main.pg_constraint k JOIN main.pg_class c ON c.oid = k.conrelid "
    "JOIN main.pg_attribute a ON a.attrelid = c.oid AND list_contains(k.conkey, a.attnum)"
)
_KEY = (
    "$DATABASE AS constraint_catalog, 'public' AS constraint_schema, k.conname AS constraint_name"
)
_OF_TABLE = "$DATABASE AS table_catalog, 'public' AS table_schema, c.relname AS table_name"
_STATISTICS = tuple(
    f"INSERT INTO main.pg_{view}_{which}_tables BY NAME "
    f"SELECT c.oid AS relid, n.nspname AS schemaname, c.relname AS relname {_NAMED} "
    f"WHERE c.relkind = 'r' AND {condition}"
    for view in ("stat", "statio")
    for which, condition in (
        ("all", "true"),
        ("user", "n.nspname = 'public'"),
        ("sys", "n.nspname <> 'public'"),
    )
)
_GRANTS = tuple(
    f"""INSERT INTO main."information_schema.{view}" BY NAME
SELECT 'curator' AS grantor, {grantee} AS grantee, {_OF_TABLE}, 'SELECT' AS privilege_type,
  'NO' AS is_grantable, 'YES' AS with_hierarchy
FROM main.pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 2200"""
    for view, grantee in (("table_privileges", "'PUBLIC'"), ("role_table_grants", "'PUBLIC'"))
)
_COLUMN_GRANTS = tuple(
    f"""INSERT INTO main."information_schema.{view}" BY NAME
SELECT 'curator' AS grantor, 'PUBLIC' AS grantee, {_OF_TABLE}, a.attname AS column_name,
  'SELECT' AS privilege_type, 'NO' AS is_grantable
FROM main.pg_class c JOIN main.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relkind = 'r' AND c.relnamespace = 2200"""
    for view in ("column_privileges", "role_column_grants")
)
_VIEWS = (
    f"""INSERT INTO main.pg_tables BY NAME
SELECT n.nspname AS schemaname, c.relname AS tablename, 'curator' AS tableowner, c.relhasindex AS hasindexes,
  c.relhasrules AS hasrules, c.relhastriggers AS hastriggers, c.relrowsecurity AS rowsecurity
{_NAMED} WHERE c.relkind = 'r'""",
    f"""INSERT INTO main.pg_views BY NAME
SELECT n.nspname AS schemaname, c.relname AS viewname, 'curator' AS viewowner {_NAMED} WHERE c.relkind = 'v'""",
    """INSERT INTO main.pg_indexes BY NAME
SELECT 'public' AS schemaname, t.relname AS tablename, c.relname AS indexname, k.said AS indexdef
FROM main.pg_index i JOIN main.pg_class c ON c.oid = i.indexrelid JOIN main.pg_class t ON t.oid = i.indrelid
LEFT JOIN main.texts_of_keys k ON k.oid = c.oid AND k.place = 0""",
    *_STATISTICS,
    f"""INSERT INTO main."information_schema.tables" BY NAME
SELECT $DATABASE AS table_catalog, n.nspname AS table_schema, c.relname AS table_name,
  {_KINDS.format("c.relkind")} AS table_type, 'NO' AS is_insertable_into, 'NO' AS is_typed {_NAMED}
WHERE c.relkind IN ('r', 'v')""",
    f"""INSERT INTO main."information_schema.columns" BY NAME
SELECT $DATABASE AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS column_name,
  a.attnum AS ordinal_position, {_FLAG.format("NOT a.attnotnull")} AS is_nullable,
  CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN 'ARRAY' ELSE d_format_type(t.oid, NULL) END AS data_type,
  CASE WHEN t.typname IN ('text', 'varchar') THEN 1073741824 END AS character_octet_length,
  CASE t.typname WHEN 'int2' THEN 16 WHEN 'int4' THEN 32 WHEN 'int8' THEN 64 WHEN 'float4' THEN 24
    WHEN 'float8' THEN 53 END AS numeric_precision,
  CASE WHEN t.typname = 'numeric' THEN 10 WHEN t.typcategory = 'N' AND t.typname[:3] <> 'reg' AND t.typname <> 'oid'
    THEN 2 END AS numeric_precision_radix,
  CASE WHEN t.typname IN ('int2', 'int4', 'int8') THEN 0 END AS numeric_scale,
  CASE WHEN t.typname = 'date' THEN 0 WHEN t.typname[:4] = 'time' THEN 6 END AS datetime_precision,
  $DATABASE AS udt_catalog, 'pg_catalog' AS udt_schema, t.typname AS udt_name, a.attnum AS dtd_identifier,
  'NO' AS is_self_referencing, 'NO' AS is_identity, 'NO' AS identity_cycle, 'NEVER' AS is_generated,
  'NO' AS is_updatable
{_NAMED} JOIN main.pg_attribute a ON a.attrelid = c.oid JOIN main.pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'v') AND a.attnum > 0""",
    """INSERT INTO main."information_schema.schemata" BY NAME
SELECT $DATABASE AS catalog_name, nspname AS schema_name, 'curator' AS schema_owner FROM main.pg_namespace""",
    """INSERT INTO main."information_schema.information_schema_catalog_name" BY NAME
SELECT $DATABASE AS catalog_name""",
    f"""INSERT INTO main."information_schema.views" BY NAME
SELECT $DATABASE AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, 'NONE' AS check_option,
  'NO' AS is_updatable, 'NO' AS is_insertable_into {_NAMED} WHERE c.relkind = 'v'""",
    f"""INSERT INTO main."information_schema.table_constraints" BY NAME
SELECT {_KEY}, {_OF_TABLE}, 'PRIMARY KEY' AS constraint_type, 'NO' AS is_deferrable, 'NO' AS initially_deferred,
  'YES' AS enforced {_KEYS}""",
    f"""INSERT INTO main."information_schema.key_column_usage" BY NAME
SELECT {_KEY}, {_OF_TABLE}, a.attname AS column_name, list_position(k.conkey, a.attnum) AS ordinal_position {_KEYS}""",
    f"""INSERT INTO main."information_schema.constraint_column_usage" BY NAME
SELECT {_KEY}, {_OF_TABLE}, a.attname AS column_name {_KEYS}""",
    f"""INSERT INTO main."information_schema.constraint_table_usage" BY NAME SELECT {_KEY}, {_OF_TABLE} {_KEYS}""",
    *_GRANTS,
    *_COLUMN_GRANTS,
)
