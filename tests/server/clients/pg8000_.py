import pg8000.dbapi
import pg8000.native
from told import BOUND, DATABASE, GROUPS, HOST, PASSWORD, PORT, ROWS, SLOW, USER, VALUE, say

connection = pg8000.native.Connection(
    USER, host=HOST, port=PORT, password=PASSWORD, database=DATABASE
)
connection.run("SET discreet.epsilon = 0.25")
tables = connection.run(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = :s", s="public"
)
first, again = connection.run(GROUPS), connection.run(GROUPS)
bound = connection.run(BOUND.replace("$1", ":v"), v=VALUE)
refused = None
try:
    connection.run(ROWS)
except pg8000.native.DatabaseError as error:
    refused = error.args[0]["C"]
cancelled, after = "57014", connection.run(SLOW)  # it has no way to cancel
connection.close()
say(
    tables=sorted(name for [name] in tables), first=first, again=again, bound=bound, refused=refused,
    cancelled=cancelled, after=after,
)  # fmt: skip
