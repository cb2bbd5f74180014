"""The functions of Postgres that clients call on its catalog: a closed list, each written for the catalog's own database.

FUNCTIONS says which function answers a call, and the type of its result: `$1` is that of the first argument, `$1[]` an
array of it, `$1*` its element.
"""

from __future__ import annotations

# Objects that clients refer to by name (regclass, regtype, ...) are numbers; d_NAME_text and d_NAME turn one into the
# other. Tables of the policy and of pg_catalog need no schema; those of information_schema have numbers from 13,000 on.
_MACROS = r"""
d_format_type(o, m) := (SELECT f__.said || CASE WHEN coalesce(m, -1) < 0 OR f__.typname NOT IN ('varchar', 'bpchar') THEN ''
  ELSE '(' || (m - 4) || ')' END FROM main.written_types f__ WHERE f__.oid = o)
d_regtype_text(o) := CASE WHEN o = 0 THEN '-' ELSE coalesce(d_format_type(o, NULL), CAST(o AS VARCHAR)) END
d_regtype(x) := (SELECT min(f__.oid) FROM main.written_types f__ WHERE f__.said = lower(replace(x, 'pg_catalog.', ''))
  OR f__.typname = lower(replace(x, 'pg_catalog.', '')) OR f__.also = lower(replace(x, 'pg_catalog.', '')))
d_regclass_text(o) := CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT CASE WHEN r__.relnamespace = 13207 THEN
  'information_schema.' ELSE '' END || d_quote_ident(r__.relname) FROM main.pg_class r__ WHERE r__.oid = o),
  CAST(o AS VARCHAR)) END
d_regclass(x) := coalesce(TRY_CAST(x AS BIGINT), (SELECT min(r__.oid) FROM main.pg_class r__
  JOIN main.pg_namespace s__ ON s__.oid = r__.relnamespace WHERE (r__.relname = d_bare(x) OR r__.relname = lower(d_bare(x))) AND
  CASE WHEN contains(x, '.') THEN lower(split_part(replace(x, '"', ''), '.', 1)) = s__.nspname
  ELSE s__.nspname IN ('pg_catalog', 'public') END))
d_bare(x) := replace(CASE WHEN contains(x, '.') THEN split_part(x, '.', -1) ELSE x END, '"', '')
d_regproc_text(o) := CASE WHEN o = 0 THEN '-' ELSE coalesce((SELECT p__.proname FROM main.pg_proc p__ WHERE p__.oid = o),
  CAST(o AS VARCHAR)) END
d_regproc(x) := (SELECT min(p__.oid) FROM main.pg_proc p__ WHERE p__.proname = lower(d_bare(split_part(x, '(', 1))))
d_regnamespace_text(o) := coalesce((SELECT d_quote_ident(s__.nspname) FROM main.pg_namespace s__ WHERE s__.oid = o),
  CAST(o AS VARCHAR))
d_regnamespace(x) := (SELECT s__.oid FROM main.pg_namespace s__ WHERE s__.nspname = replace(x, '"', ''))
d_regrole_text(o) := CASE o WHEN 10 THEN 'curator' ELSE CAST(o AS VARCHAR) END
d_regrole(x) := CASE x WHEN 'curator' THEN 10 ELSE 16385 END
d_quote_ident(x) := CASE WHEN regexp_full_match(x, '[a-z_][a-z0-9_$]*') AND NOT EXISTS (SELECT 1 FROM main.keywords k__
  WHERE k__.word = x AND k__.catcode <> 'U') THEN x ELSE '"' || replace(x, '"', '""') || '"' END
d_quote_literal(x) := '''' || replace(CAST(x AS VARCHAR), '''', '''''') || ''''
d_col_description(o, n) := (SELECT e__.description FROM main.pg_description e__ WHERE e__.objoid = o AND e__.objsubid = n)
d_obj_description(o) := (SELECT e__.description FROM main.pg_description e__ WHERE e__.objoid = o AND e__.objsubid = 0)
d_told_of(o, c) := CASE WHEN c = 'pg_class' THEN d_obj_description(o) END
d_constraint(o) := (SELECT k__.said FROM main.texts_of_keys k__ WHERE k__.oid = o AND k__.place = 0)
d_short_index(o, n) := replace(d_index_part(o, n), ' ON public.', ' ON ')
d_index_part(o, n) := (SELECT k__.said FROM main.texts_of_keys k__ WHERE k__.oid = o AND k__.place = n)
d_visible(o) := o < 13000 OR o >= 16384
d_may(p) := lower(p) IN ('select', 'usage', 'connect', 'select with grant option', 'member', 'execute')
d_array_lower(a, d) := CASE WHEN len(a) > 0 AND d = 1 THEN 1 END
d_array_upper(a, d) := CASE WHEN len(a) > 0 AND d = 1 THEN len(a)::INTEGER END
d_array_cat(a, b) := list_concat(a, b)
d_array_to_string(a, s) := array_to_string(list_filter(a, lambda x: x IS NOT NULL), s)
d_substring_like(x, p) := CASE WHEN regexp_matches(x, p) THEN regexp_extract(x, p, 1) END
d_size_pretty(n) := CASE WHEN n < 10240 THEN n || ' bytes' WHEN n < 10485760 THEN round(n / 1024)::BIGINT || ' kB'
  ELSE round(n / 1048576)::BIGINT || ' MB' END
d_encoding(n) := CASE n WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' WHEN 8 THEN 'LATIN1' ELSE '' END
d_encoding_number(x) := CASE WHEN upper(replace(x, '-', '')) = 'UTF8' THEN 6 ELSE -1 END
d_expand(a) := unnest(list_transform(range(1, len(a) + 1), lambda i: {'x': a[i], 'n': i}))
d_aclexplode(a) := unnest(CAST([] AS STRUCT(grantor BIGINT, grantee BIGINT, privilege_type VARCHAR,
  is_grantable BOOLEAN)[]))
d_subscripts(a) := unnest(range(1, len(a) + 1))
d_subscripts_from_0(a) := unnest(range(0, len(a)))
d_series(a, b) := unnest(generate_series(a, b))
d_position(a, b) := strpos(b, a)
d_parts(x) := list_transform(string_split(x, '.'), lambda p: replace(p, '"', ''))
d_types_text(a) := coalesce(array_to_string(list_transform(a, lambda o: CAST(o AS VARCHAR)), ', '), '')
"""


def macros() -> tuple[str, ...]:
    """CREATE MACRO statements, in an order in which each finds those it calls."""
    lines: list[str] = []
    for line in _MACROS.strip().splitlines():
        if line.startswith(" "):
            lines[-1] += line
        else:
            lines.append(line)
    order = ("d_quote_ident", "d_bare", "d_format_type", "d_obj_description", "d_index_part")
    lines.sort(key=lambda line: next((n for n, name in enumerate(order) if line.startswith(name)), len(order)))
    return tuple(f"CREATE MACRO {head} AS {body}" for head, body in (line.split(" := ", 1) for line in lines))


def _same(names: str, kind: str) -> dict[str, tuple[str, str]]:
    return {name: (name, kind) for name in names.split()}


# name in Postgres -> (function of the catalog's database, type of its result)
FUNCTIONS: dict[str, tuple[str, str]] = {
    **_same("lower upper trim ltrim rtrim replace substr substring left right concat concat_ws split_part", "text"),
    **_same("md5 repeat lpad rpad translate reverse regexp_replace string_agg chr", "text"),
    **_same("length strpos ascii bit_length", "int4"),
    **_same("abs sign greatest least coalesce nullif min max first_value last_value lag lead", "$1"),
    **_same("floor ceil round sqrt power exp ln pi mod", "float8"),
    **_same("count row_number rank dense_rank", "int8"),
    **_same("sum", "int8") | _same("avg", "float8"),
    **_same("bool_and bool_or starts_with", "bool"),
    **_same("array_agg", "$1[]") | _same("unnest", "$1*"),
    **_same("array_length cardinality array_position", "int4"),
    "char_length": ("length", "int4"),
    "character_length": ("length", "int4"),
    "octet_length": ("strlen", "int4"),
    "btrim": ("trim", "text"),
    "ceiling": ("ceil", "float8"),
    "every": ("bool_and", "bool"),
    "position": ("d_position", "int4"),
    "array_to_string": ("d_array_to_string", "text"),
    "array_lower": ("d_array_lower", "int4"),
    "array_upper": ("d_array_upper", "int4"),
    "array_cat": ("d_array_cat", "$1"),
    "array_append": ("list_append", "$1"),
    "array_remove": ("list_filter", "$1"),
    "string_to_array": ("string_split", "_text"),
    "parse_ident": ("d_parts", "_text"),
    "quote_ident": ("d_quote_ident", "text"),
    "quote_literal": ("d_quote_literal", "text"),
    "quote_nullable": ("d_quote_literal", "text"),
    "json_build_object": ("json_object", "json"),
    "jsonb_build_object": ("json_object", "jsonb"),
    "json_build_array": ("json_array", "json"),
    "json_agg": ("json_group_array", "json"),
    "jsonb_agg": ("json_group_array", "jsonb"),
    "to_json": ("to_json", "json"),
    "row_to_json": ("to_json", "json"),
    "oidvectortypes": ("d_types_text", "text"),
    # about objects
    "format_type": ("d_format_type", "text"),
    "col_description": ("d_col_description", "text"),
    "to_regclass": ("d_regclass", "regclass"),
    "to_regtype": ("d_regtype", "regtype"),
    "to_regproc": ("d_regproc", "regproc"),
    "to_regnamespace": ("d_regnamespace", "regnamespace"),
    "to_regrole": ("d_regrole", "regrole"),
    "pg_size_pretty": ("d_size_pretty", "text"),
    "pg_encoding_to_char": ("d_encoding", "name"),
    "pg_char_to_encoding": ("d_encoding_number", "int4"),
    "aclexplode": ("d_aclexplode", "record"),
    "_pg_expandarray": ("d_expand", "record"),
    "generate_series": ("d_series", "$1"),
}

# name -> (expression, type), where {0}, {1}, ... are the arguments, {last} is the last one,
# and {user}, {database}, ... are of the session; arguments beyond are left out
_NULLS = {
    "text": "pg_get_viewdef pg_get_ruledef pg_get_triggerdef pg_get_functiondef pg_get_function_result "
    "pg_get_function_sqlbody pg_get_partkeydef pg_get_serial_sequence pg_get_statisticsobjdef "
    "pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions shobj_description "
    "pg_get_partition_constraintdef pg_get_replica_identity_index pg_describe_object pg_last_wal_replay_lsn "
    "pg_current_logfile pg_relation_filepath inet_client_addr inet_server_addr txid_status",
    "int8": "pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size "
    "pg_tablespace_size pg_stat_get_numscans pg_stat_get_tuples_inserted pg_stat_get_live_tuples pg_sequence_last_value "
    "pg_stat_get_dead_tuples pg_relation_filenode",
    "int4": "inet_client_port inet_server_port pg_trigger_depth age",
    "_text": "pg_options_to_table pg_sequence_parameters",
    "timestamptz": "pg_last_xact_replay_timestamp pg_stat_get_last_analyze_time pg_xact_commit_timestamp",
    "oid": "pg_my_temp_schema_or_null",
}
_FALSE = (
    "pg_is_in_recovery pg_is_wal_replay_paused pg_is_other_temp_schema row_security_active pg_cancel_backend "
    "pg_terminate_backend pg_relation_is_updatable_flag pg_index_has_property pg_indexam_has_property "
    "pg_index_column_has_property pg_jit_available pg_is_in_backup pg_relation_is_publishable"
)
_VISIBLE = "table type function operator collation opclass opfamily conversion ts_config ts_dict ts_parser statistics_obj"
_PRIVILEGES = "table column any_column schema database function sequence type language tablespace server parameter"
EXPRESSIONS: dict[str, tuple[str, str]] = {
    **{name: (f"CAST(NULL AS {kind})", pg) for pg, kind in (("text", "VARCHAR"),) for name in _NULLS["text"].split()},
    **{name: ("CAST(NULL AS BIGINT)", "int8") for name in _NULLS["int8"].split()},
    **{name: ("CAST(NULL AS INTEGER)", "int4") for name in _NULLS["int4"].split()},
    **{name: ("CAST(NULL AS VARCHAR)", "timestamptz") for name in _NULLS["timestamptz"].split()},
    **{name: ("false", "bool") for name in _FALSE.split()},
    **{f"pg_{name}_is_visible": ("d_visible({0})", "bool") for name in _VISIBLE.split()},
    **{f"has_{name}_privilege": ("d_may({last})", "bool") for name in _PRIVILEGES.split()},
    "pg_has_role": ("d_may({last})", "bool"),
    "pg_get_expr": ("{0}", "text"),
    "pg_get_userbyid": ("CASE {0} WHEN 10 THEN 'curator' WHEN 16385 THEN {user} ELSE 'unknown' END", "name"),
    "pg_get_constraintdef": ("d_constraint({0})", "text"),
    "pg_get_function_arguments": ("''", "text"),
    "pg_get_function_identity_arguments": ("''", "text"),
    "pg_tablespace_location": ("CASE WHEN {0} IS NOT NULL THEN '' END", "text"),
    "pg_my_temp_schema": ("0", "oid"),
    "pg_relation_is_updatable": ("0", "int4"),
    "pg_column_is_updatable": ("false", "bool"),
    "pg_backend_pid": ("{backend}", "int4"),
    "getdatabaseencoding": ("'UTF8'", "name"),
    "pg_client_encoding": ("'UTF8'", "name"),
    "pg_postmaster_start_time": ("{started}", "timestamptz"),
    "pg_conf_load_time": ("{started}", "timestamptz"),
    "now": ("{moment}", "timestamptz"),
    "clock_timestamp": ("{moment}", "timestamptz"),
    "statement_timestamp": ("{moment}", "timestamptz"),
    "transaction_timestamp": ("{moment}", "timestamptz"),
    "txid_current": ("1", "int8"),
    "pg_current_xact_id": ("1", "xid8"),
    "pg_advisory_unlock_all": ("''", "void"),
    "pg_blocking_pids": ("CAST([] AS INTEGER[])", "_int4"),
    "version": ("{version}", "text"),
    "current_database": ("{database}", "name"),
    "current_catalog": ("{database}", "name"),
    "current_user": ("{user}", "name"),
    "session_user": ("{user}", "name"),
    "user": ("{user}", "name"),
    "current_role": ("{user}", "name"),
    "current_schema": ("'public'", "name"),
    "current_schemas": ("CASE WHEN {0} THEN ['pg_catalog', 'public'] ELSE ['public'] END", "_name"),
    "set_config": ("{1}", "text"),
    "current_setting": ("(SELECT n__.setting FROM settings_now n__ WHERE lower(n__.name) = lower({0}))", "text"),
}

# Functions whose call gives rows: they stand for these relations where a table may stand.
AS_TABLES = {"pg_show_all_settings": "pg_settings", "pg_get_keywords": "keywords"}
AGGREGATES = frozenset("count sum min max avg bool_and bool_or every array_agg string_agg json_agg jsonb_agg".split())
