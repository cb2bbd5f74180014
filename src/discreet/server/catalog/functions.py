"""The closed list of Postgres functions that clients may call on the catalog.

FUNCTIONS has, for each, the function that computes it and the type of its result: `$1` is the type
of the first argument, `$1[]` an array of it, `$1*` its element.
"""

from __future__ import annotations

from importlib import resources


def macros() -> tuple[str, ...]:
    """Return the statements of functions.sql. A function is defined before those that call it."""
    text = resources.files(__package__).joinpath("functions.sql").read_text(encoding="utf-8")
    return tuple(part for part in text.split(";\n") if part.strip())


def _same(names: str, kind: str) -> dict[str, tuple[str, str]]:
    return {name: (name, kind) for name in names.split()}


# name in Postgres -> (function of the catalog's database, type of its result)
FUNCTIONS: dict[str, tuple[str, str]] = {
    **_same(
        "lower upper trim ltrim rtrim substr substring left right concat concat_ws split_part",
        "text",
    ),
    **_same("md5 translate reverse string_agg chr", "text"),
    **_same("length strpos ascii bit_length", "int4"),
    **_same(
        "abs sign greatest least coalesce nullif min max first_value last_value lag lead", "$1"
    ),
    **_same("floor ceil round sqrt power exp ln pi mod", "float8"),
    **_same("count row_number rank dense_rank", "int8"),
    **_same("sum", "int8")
    | _same("avg", "float8"),  # sums of counts and places: none here is longer
    **_same("bool_and bool_or starts_with", "bool"),
    **_same("array_agg", "$1[]") | _same("unnest", "$1*"),
    **_same("array_length cardinality array_position", "int4"),
    "replace": ("d_replace", "text"),
    "regexp_replace": ("d_regexp_replace", "text"),
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
    "array_remove": ("d_array_remove", "$1"),
    "format": ("concat", "text"),
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
    # functions about objects of the catalog
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

# name -> (expression, type). In the expression {0}, {1}, ... are the arguments, {last} the last
# one, and {user}, {database}, ... come from the session. Other arguments are ignored.
_NULLS = {
    "text": "pg_get_viewdef pg_get_ruledef pg_get_triggerdef pg_get_functiondef pg_get_function_result "
    "pg_get_function_sqlbody pg_get_partkeydef pg_get_serial_sequence pg_get_statisticsobjdef "
    "pg_get_statisticsobjdef_columns pg_get_statisticsobjdef_expressions shobj_description "
    "pg_get_partition_constraintdef pg_get_replica_identity_index pg_describe_object pg_last_wal_replay_lsn "
    "pg_current_logfile pg_relation_filepath txid_status",
    "int8": "pg_relation_size pg_table_size pg_total_relation_size pg_indexes_size pg_database_size "
    "pg_tablespace_size pg_stat_get_numscans pg_stat_get_tuples_inserted pg_stat_get_live_tuples "
    "pg_sequence_last_value pg_stat_get_dead_tuples pg_relation_filenode",
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
_VISIBLE = (
    "table type function operator collation opclass opfamily conversion ts_config ts_dict ts_parser ts_template "
    "statistics_obj"
)
_PRIVILEGES = "table column any_column schema database function sequence type language tablespace server parameter"
EXPRESSIONS: dict[str, tuple[str, str]] = {
    **{
        name: (f"CAST(NULL AS {kind})", pg)
        for pg, kind in (("text", "VARCHAR"),)
        for name in _NULLS["text"].split()
    },
    **dict.fromkeys(("inet_client_addr", "inet_server_addr"), ("CAST(NULL AS VARCHAR)", "inet")),
    **dict.fromkeys(_NULLS["int8"].split(), ("CAST(NULL AS BIGINT)", "int8")),
    **dict.fromkeys(_NULLS["int4"].split(), ("CAST(NULL AS INTEGER)", "int4")),
    **dict.fromkeys(_NULLS["timestamptz"].split(), ("CAST(NULL AS VARCHAR)", "timestamptz")),
    **dict.fromkeys(_FALSE.split(), ("false", "bool")),
    **{f"pg_{name}_is_visible": ("d_visible({0})", "bool") for name in _VISIBLE.split()},
    **{f"has_{name}_privilege": ("d_may({last})", "bool") for name in _PRIVILEGES.split()},
    "pg_has_role": ("d_may({last})", "bool"),
    "pg_get_expr": ("{0}", "text"),
    "pg_get_userbyid": (
        "CASE {0} WHEN 10 THEN 'curator' WHEN 16385 THEN {user} ELSE 'unknown' END",
        "name",
    ),
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
    "current_setting": (
        "(SELECT n__.setting FROM settings_now n__ WHERE lower(n__.name) = lower({0}))",
        "text",
    ),
}

# Functions whose result may be longer than their arguments: check its length before computing it.
_GROWING = """
concat concat_ws format replace regexp_replace quote_ident quote_literal quote_nullable array_to_string
json_build_object jsonb_build_object json_build_array to_json row_to_json
"""
GROWING = frozenset(_GROWING.split())

# Functions that return rows. In FROM, each stands for this relation.
AS_TABLES = {"pg_show_all_settings": "pg_settings", "pg_get_keywords": "keywords"}
