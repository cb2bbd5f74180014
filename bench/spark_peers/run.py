"""The questions of bench/spark.py, asked of Tumult Analytics on a Spark of its own, in its own
environment: `run.py FOLDER ADDRESS SECONDS`.

Prints one JSON line a question: the seconds of each asking, and of Spark's own query. Spark is warm:
a count of all rows came first. Each question is asked three times, but not again once it has taken
SECONDS.
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession
from tmlt.analytics import (
    AddOneRow,
    AddRowsWithID,
    ApproxDPBudget,
    KeySet,
    MaxRowsPerID,
    QueryBuilder,
    Session,
)

DELTA = 1e-7
FOLDER, ADDRESS, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master(ADDRESS)
    .config("spark.driver.memory", "4g")
    .config("spark.sql.shuffle.partitions", "4")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
with open(f"{FOLDER}/questions.json", encoding="utf-8") as file:
    ASKED = json.load(file)
FRAMES = {name: spark.read.parquet(f"{FOLDER}/data/{name}") for name in ASKED["tables"]}
for name, frame in FRAMES.items():
    frame.createOrReplaceTempView(name)
BUDGET = ApproxDPBudget(10_000, 1e-3)
ROWS = (  # the cheapest promise: one row is one person, which nothing enforces
    Session.Builder()
    .with_privacy_budget(BUDGET)
    .with_private_dataframe("people", FRAMES["people"], AddOneRow())
    .with_public_dataframe("regions", FRAMES["regions"])
    .build()
)
PERSONS = (
    Session.Builder()
    .with_privacy_budget(BUDGET)
    .with_id_space("persons")
    .with_private_dataframe("people", FRAMES["people"], AddRowsWithID("person", "persons"))
    .with_private_dataframe("homes", FRAMES["homes"], AddRowsWithID("person", "persons"))
    .build()
)
STATES = KeySet.from_dict({"state": ASKED["states"]})
REGIONS = KeySet.from_dict({"region": ASKED["regions"]})
ROOMS = KeySet.from_dict({"rooms": ASKED["rooms"]})
PEOPLE = QueryBuilder("people")
HOMES = QueryBuilder("people").join_private("homes").enforce(MaxRowsPerID(1))


def asked(query, epsilon, delta=0, session=ROWS):
    return session.evaluate(query, ApproxDPBudget(epsilon, delta))


def count_and_mean(query, keys, session=ROWS):
    """Each at half of ε: Tumult answers one aggregate at a time."""
    asked(query.groupby(keys).count("n"), 0.5, session=session).collect()
    asked(query.groupby(keys).average("age", 0, 120, name="m"), 0.5, session=session).collect()


def median():
    asked(PEOPLE.groupby(STATES).median("age", 0, 120, name="m"), 1).collect()


def unknown_keys():
    """Half of ε for the keys, half for their counts."""
    words = asked(PEOPLE.get_groups(["word"]), 0.5, DELTA)
    counts = asked(PEOPLE.groupby(KeySet.from_dataframe(words)).count("n"), 0.5)
    counts.orderBy("n", ascending=False).limit(10).collect()


ANSWERS = {
    "mean by 50 states": lambda: count_and_mean(PEOPLE, STATES),
    "median by 50 states": median,
    "unknown keys": unknown_keys,
    "join with a public table": lambda: count_and_mean(PEOPLE.join_public("regions"), REGIONS),
    "join of two tables by owner": lambda: count_and_mean(HOMES, ROOMS, PERSONS),
}


def timed(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


asked(PEOPLE.count("n"), 1).collect()  # starts what only the first question waits for
for question, plain in ASKED["questions"].items():
    theirs, raw = [], []
    try:
        while len(theirs) < 3 and sum(theirs) < SECONDS:
            raw.append(timed(spark.sql(plain).collect))
            theirs.append(timed(ANSWERS[question]))
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"[:300]}
    else:
        told = {"seconds": theirs, "plain": raw}
    print(json.dumps({"question": question} | told), flush=True)
