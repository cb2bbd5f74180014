import psycopg
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

with psycopg.connect(
    host=HOST,
    port=PORT,
    user=USER,
    password=PASSWORD,
    dbname=DATABASE,
    options=OPTIONS,
    autocommit=True,
) as connection:
    tables = connection.execute(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
    ).fetchall()
    first = connection.execute(GROUPS).fetchall()
    again = connection.cursor(binary=True).execute(GROUPS).fetchall()
    bound = connection.execute(BOUND.replace("$1", "%s"), (VALUE,)).fetchall()
    with connection.transaction(), connection.cursor("named") as cursor:
        paged = cursor.execute(GROUPS).fetchmany(1) + cursor.fetchmany(1)
    with connection.pipeline():
        piped = [
            connection.execute(GROUPS),
            connection.execute(BOUND.replace("$1", "%s"), (VALUE,)),
        ]
        rows = [each.fetchall() for each in piped]
    refused = cancelled = None
    try:
        connection.execute(ROWS)
    except psycopg.Error as error:
        refused = error.sqlstate
    thread = cancelling(connection.cancel_safe)
    try:
        connection.execute(SLOW)
    except psycopg.Error as error:
        cancelled = error.sqlstate
    thread.join()
    after = connection.execute(SLOW).fetchall()
say(
    tables=[name for (name,) in tables], first=first, again=again, paged=paged, bound=bound, piped=rows[0],
    refused=refused, cancelled=cancelled, after=after,
)  # fmt: skip
