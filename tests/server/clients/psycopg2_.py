import psycopg2
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

connection = psycopg2.connect(
    host=HOST, port=PORT, user=USER, password=PASSWORD, dbname=DATABASE, options=OPTIONS
)
connection.autocommit = True


def ask(sql, *values):
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall()


tables = ask(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
)
first, again = ask(GROUPS), ask(GROUPS)
bound = ask(BOUND.replace("$1", "%s"), VALUE)
refused = cancelled = None
try:
    ask(ROWS)
except psycopg2.Error as error:
    refused = error.pgcode
thread = cancelling(connection.cancel)
try:
    ask(SLOW)
except psycopg2.Error as error:
    cancelled = error.pgcode
thread.join()
connection.autocommit = False
with connection, connection.cursor("named") as cursor:
    cursor.execute(GROUPS)
    paged = [cursor.fetchone(), cursor.fetchone()]
say(
    tables=[name for (name,) in tables], first=first, again=again, paged=paged, bound=bound, refused=refused,
    cancelled=cancelled, after=ask(SLOW),
)  # fmt: skip
