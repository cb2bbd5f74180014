"""Tumult Analytics: sessions on Spark, in one local process with two threads."""

import os
import sys

from harness import DELTA, EPSILON, HIGH, LOW, QUANTILES, STATES, run
from pyspark.sql import SparkSession
from tmlt.analytics import AddOneRow, ApproxDPBudget, KeySet, PureDPBudget, QueryBuilder, Session

os.environ["PYSPARK_PYTHON"] = sys.executable
spark = (
    SparkSession.builder.master("local[2]")
    .config("spark.driver.memory", "6g")
    .config("spark.ui.enabled", "false")
    .config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "2")
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
PURE = PureDPBudget(EPSILON)


def answered(path, query, budget=PURE):
    session = Session.from_dataframe(
        budget, "people", spark.read.parquet(path), protected_change=AddOneRow()
    )
    return session.evaluate(query, session.remaining_privacy_budget).collect()


def count(path):
    return answered(path, QueryBuilder("people").count("n"))[0]["n"]


def filtered_count(path):
    return answered(path, QueryBuilder("people").filter("age BETWEEN 40 AND 64").count("n"))[0]["n"]


def mean_by_state(path):
    keys = KeySet.from_dict({"state": STATES})
    query = QueryBuilder("people").groupby(keys).average("income", LOW, HIGH, name="m")
    return {row["state"]: row["m"] for row in answered(path, query)}


def median(path):
    return answered(path, QueryBuilder("people").median("income", LOW, HIGH, name="m"))[0]["m"]


def five_quantiles(path):
    """One question each, with a fifth of ε."""
    session = Session.from_dataframe(
        PURE, "people", spark.read.parquet(path), protected_change=AddOneRow()
    )
    queries = [QueryBuilder("people").quantile("income", q, LOW, HIGH, name="m") for q in QUANTILES]
    each = PureDPBudget(EPSILON / len(QUANTILES))
    return [session.evaluate(query, each).collect()[0]["m"] for query in queries]


def unknown_keys(path):
    """Half of ε for the keys, half for their counts."""
    budget = ApproxDPBudget(EPSILON, DELTA)
    session = Session.from_dataframe(
        budget, "people", spark.read.parquet(path), protected_change=AddOneRow()
    )
    groups = session.evaluate(
        QueryBuilder("people").get_groups(["word"]), ApproxDPBudget(EPSILON / 2, DELTA)
    )
    query = QueryBuilder("people").groupby(KeySet.from_dataframe(groups)).count("n")
    return {
        row["word"]: row["n"]
        for row in session.evaluate(query, ApproxDPBudget(EPSILON / 2, 0)).collect()
    }


run(
    {
        "count": count,
        "filtered count": filtered_count,
        "mean by state": mean_by_state,
        "median": median,
        "five quantiles": five_quantiles,
        "unknown keys": unknown_keys,
    }
)
