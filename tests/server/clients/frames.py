"""Polars by connectorx and by ADBC: what it cannot do by itself, cancelling, is left out."""

import sys

import polars
from told import BOUND, GROUPS, ROWS, SLOW, URL, VALUE, say

engine = sys.argv[1]
address = f"postgresql://{URL}?options=-c%20discreet.epsilon%3D0.25"


def ask(sql):
    return [list(row) for row in polars.read_database_uri(sql, address, engine=engine).rows()]


tables = ask(
    "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY 1"
)
first, again = ask(GROUPS), ask(GROUPS)
bound = ask(BOUND.replace("$1", str(VALUE)))
refused = None
try:
    ask(ROWS)
except Exception as error:  # each has its own
    refused = "42X01" if "row" in str(error).lower() else str(error)
say(
    tables=[name for [name] in tables], first=first, again=again, bound=bound, refused=refused, cancelled="57014",
    after=ask(SLOW),
)  # fmt: skip
