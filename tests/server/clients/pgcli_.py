"""pgcli by the part of it that talks to the server: what its completion looks up, and what its
prompt runs.
"""

import psycopg
from pgcli.main import PGCli
from pgcli.pgexecute import PGExecute
from told import (
    BOUND,
    DATABASE,
    GROUPS,
    HOST,
    OPTIONS,
    PASSWORD,
    PORT,
    ROWS,
    SLOW,
    USER,
    VALUE,
    cancelling,
    say,
)

shell = PGExecute(DATABASE, USER, PASSWORD, HOST, str(PORT), options=OPTIONS)
tables = sorted(name for schema, name in shell.tables() if schema == "public")
looked = [
    list(shell.table_columns()),
    list(shell.datatypes()),
    list(shell.functions()),
    list(shell.foreignkeys()),
]
looked += [shell.search_path(), shell.schemata(), shell.databases(), list(shell.views())]
assert ("public", "people", "age", "bigint", False, None) in [tuple(column) for column in looked[0]]


def ask(sql):
    [(_, rows, _, status, _, success, _)] = shell.run(sql)
    return [list(row) for row in rows] if success else status


described = [
    row for _, rows, *_ in shell.run("\\d people", PGCli().pgspecial) for row in rows or ()
]
assert any("age" in str(row) for row in described)
first, again = ask(GROUPS), ask(GROUPS)
bound = ask(BOUND.replace("$1", str(VALUE)))
refused = cancelled = None
try:
    list(shell.run(ROWS, exception_formatter=None, on_error_resume=False))
except psycopg.Error as error:
    refused = error.sqlstate
thread = cancelling(shell.conn.cancel_safe)
try:
    list(shell.run(SLOW))
except psycopg.Error as error:
    cancelled = error.sqlstate
thread.join()
say(
    tables=tables,
    first=first,
    again=again,
    bound=bound,
    refused=refused,
    cancelled=cancelled,
    after=ask(SLOW),
)
