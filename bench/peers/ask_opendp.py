"""OpenDP: its context on a lazy Polars frame. One row a person is declared, which costs it
nothing.
"""

import opendp.prelude as dp
import polars as pl
from harness import DELTA, EPSILON, HIGH, LOW, QUANTILES, STATES, run

dp.enable_features("contrib")
ROWS = 100_000_000  # a public bound on the number of rows
CANDIDATES = [float(place) for place in range(LOW, HIGH + 1)]


def people(path, *, delta=None):
    return dp.Context.compositor(
        data=pl.scan_parquet(path),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(epsilon=EPSILON, delta=delta),
        split_evenly_over=1,
        margins=[dp.polars.Margin(max_length=ROWS)],
    ).query()


def count(path):
    return people(path).select(dp.len(signed=True)).release().collect().item()


def filtered_count(path):
    wanted = (pl.col("age") >= 40) & (pl.col("age") <= 64)
    return people(path).filter(wanted).select(dp.len(signed=True)).release().collect().item()


def mean_by_state(path):
    """Of whole dollars: its sums of floats need far more noise under a loose bound on the number of
    rows.
    """
    dollars = pl.col("income").cast(int).fill_null(0)
    query = (
        people(path)
        .group_by("state")
        .agg(dollars.dp.sum((LOW, HIGH)).alias("s"), dp.len(signed=True).alias("n"))
    )
    found = query.with_keys(pl.LazyFrame({"state": STATES})).release().collect()
    return {
        row["state"]: min(max(row["s"] / max(row["n"], 1), LOW), HIGH) for row in found.to_dicts()
    }


def quantile(q):
    """Among whole dollars; finer candidates would take it minutes."""
    return pl.col("income").fill_null(0.0).fill_nan(0.0).dp.quantile(q, CANDIDATES).alias(f"q{q}")


def median(path):
    return people(path).select(quantile(0.5)).release().collect().item()


def five_quantiles(path):
    found = people(path).select([quantile(q) for q in QUANTILES]).release().collect()
    return list(found.row(0))


def unknown_keys(path):
    found = (
        people(path, delta=DELTA)
        .group_by("word")
        .agg(dp.len(signed=True).alias("n"))
        .release()
        .collect()
    )
    return dict(found.rows())


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
