import pandas
import sqlalchemy
from told import GROUPS, OPTIONS, ROWS, SLOW, URL, VALUE, cancelling, say

engine = sqlalchemy.create_engine(f"postgresql+psycopg://{URL}", connect_args={"options": OPTIONS})
inspector = sqlalchemy.inspect(engine)
tables = sorted(inspector.get_table_names())
assert [column["name"] for column in inspector.get_columns("people")][:2] == ["person_id", "age"]
assert inspector.get_pk_constraint("people")["constrained_columns"] == ["person_id"]
sqlalchemy.MetaData().reflect(engine)
first = pandas.read_sql(GROUPS, engine).values.tolist()
with engine.connect() as connection:
    again = pandas.read_sql(sqlalchemy.text(GROUPS), connection).values.tolist()
    people = sqlalchemy.Table("people", sqlalchemy.MetaData(), autoload_with=engine)
    counted = (
        sqlalchemy.select(sqlalchemy.func.count()).select_from(people).where(people.c.age > VALUE)
    )
    bound = connection.execute(counted).fetchall()
    refused = cancelled = None
    try:
        connection.execute(sqlalchemy.text(ROWS))
    except sqlalchemy.exc.DBAPIError as error:
        refused = error.orig.sqlstate
    connection.rollback()
    thread = cancelling(connection.connection.driver_connection.cancel_safe)
    try:
        connection.execute(sqlalchemy.text(SLOW))
    except sqlalchemy.exc.DBAPIError as error:
        cancelled = error.orig.sqlstate
    thread.join()
    connection.rollback()
    after = connection.execute(sqlalchemy.text(SLOW)).fetchall()
say(
    tables=tables, first=first, again=again, bound=[list(row) for row in bound], refused=refused, cancelled=cancelled,
    after=[list(row) for row in after],
)  # fmt: skip
