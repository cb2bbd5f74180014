import adbc_driver_manager
from adbc_driver_postgresql import dbapi
from told import BOUND, GROUPS, ROWS, SLOW, URL, VALUE, cancelling, say

with dbapi.connect(
    f"postgresql://{URL}?options=-c%20discreet.epsilon%3D0.25", autocommit=True
) as connection:
    found = (
        connection.adbc_get_objects(depth="tables", db_schema_filter="public")
        .read_all()
        .to_pylist()
    )
    [schema] = [
        each
        for catalog in found
        for each in catalog["catalog_db_schemas"] or ()
        if each["db_schema_tables"]
    ]
    tables = sorted(
        table["table_name"]
        for table in schema["db_schema_tables"]
        if table["table_type"] == "table"
    )

    def ask(sql, values=None):
        with connection.cursor() as cursor:
            cursor.execute(sql, values)
            return [list(row) for row in cursor.fetchall()]

    first, again = ask(GROUPS), ask(GROUPS)
    bound = ask(BOUND, (VALUE,))
    refused = cancelled = None
    try:
        ask(ROWS)
    except adbc_driver_manager.Error as error:
        refused = error.sqlstate
    cursor = connection.cursor()
    thread = cancelling(cursor.adbc_cancel)
    try:
        cursor.execute(SLOW)
        cursor.fetchall()
    except adbc_driver_manager.Error as error:
        cancelled = error.sqlstate
    thread.join()
    cursor.close()
    after = ask(SLOW)
say(
    tables=tables,
    first=first,
    again=again,
    bound=bound,
    refused=refused,
    cancelled=cancelled,
    after=after,
)
