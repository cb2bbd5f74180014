import sys

import pyodbc
from told import (
    BOUND,
    DATABASE,
    GROUPS,
    HOST,
    PASSWORD,
    PORT,
    ROWS,
    SLOW,
    USER,
    VALUE,
    cancelling,
    say,
)

extra = sys.argv[1] if len(sys.argv) > 1 else ""
connection = pyodbc.connect(
    f"DRIVER={{PostgreSQL Unicode}};SERVER={HOST};PORT={PORT};UID={USER};PWD={{{PASSWORD}}};DATABASE={DATABASE};"
    f"ConnSettings=SET discreet.epsilon = 0.25;{extra}",
    autocommit=True,
)


def ask(sql, *values):
    return [list(row) for row in connection.execute(sql, *values).fetchall()]


cursor = connection.cursor()
tables = sorted(row.table_name for row in cursor.tables(schema="public", tableType="TABLE"))
assert "age" in [row.column_name for row in cursor.columns(table="people")]
assert [row.column_name for row in cursor.primaryKeys("people", schema="public")] == ["person_id"]
cursor.statistics("people", schema="public").fetchall()
cursor.foreignKeys("people").fetchall()
first, again = ask(GROUPS), ask(GROUPS)
bound = ask(BOUND.replace("$1", "?"), VALUE)
refused = cancelled = None
try:
    ask(ROWS)
except pyodbc.Error as error:
    refused = error.args[0]
waiting = connection.cursor()
thread = cancelling(waiting.cancel)
try:
    waiting.execute(SLOW)
except pyodbc.Error as error:
    cancelled = error.args[0]
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
