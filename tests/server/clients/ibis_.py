import ibis
import psycopg
from told import (
    DATABASE,
    HOST,
    OPTIONS,
    PASSWORD,
    PORT,
    ROWS,
    SLOW,
    TOLD,
    USER,
    VALUE,
    cancelling,
    say,
)

backend = ibis.postgres.connect(
    host=HOST,
    port=PORT,
    user=USER,
    password=PASSWORD,
    database=DATABASE,
    options=OPTIONS,
    autocommit=True,
)
tables = sorted(backend.list_tables())
people = backend.table("people")
grouped = (
    people.filter(people.age < TOLD["own"])
    .group_by("sex")
    .aggregate(n=ibis._.count())
    .order_by("sex")
)
first, again = grouped.to_pandas().values.tolist(), grouped.to_pandas().values.tolist()
bound = [[people.filter(people.age > VALUE).count().execute()]]
connection = backend.con
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
    tables=tables,
    first=first,
    again=again,
    bound=bound,
    refused=refused,
    cancelled=cancelled,
    after=after,
)
