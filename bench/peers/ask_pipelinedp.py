"""PipelineDP: its engine on the local backend, over rows as Python tuples."""

import duckdb
import pipeline_dp
from harness import DELTA, EPSILON, HIGH, LOW, QUANTILES, STATES, run
from pipeline_dp import Metrics, NoiseKind


def answered(path, metrics, *, key="'all'", where="TRUE", public=None):
    """One row a person; with public keys all of ε is for the numbers, otherwise some of it selects
    the keys.
    """
    rows = duckdb.sql(f"SELECT person_id, {key}, income FROM '{path}' WHERE {where}").fetchall()
    accountant = pipeline_dp.NaiveBudgetAccountant(total_epsilon=EPSILON, total_delta=DELTA)
    engine = pipeline_dp.DPEngine(accountant, pipeline_dp.LocalBackend())
    params = pipeline_dp.AggregateParams(
        noise_kind=NoiseKind.LAPLACE,
        metrics=metrics,
        max_partitions_contributed=1,
        max_contributions_per_partition=1,
        min_value=LOW,
        max_value=HIGH,
    )
    extractors = pipeline_dp.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    result = engine.aggregate(rows, params, extractors, public_partitions=public)
    accountant.compute_budgets()
    return dict(result)


def count(path):
    return answered(path, [Metrics.COUNT], public=["all"])["all"].count


def filtered_count(path):
    return answered(path, [Metrics.COUNT], where="age BETWEEN 40 AND 64", public=["all"])[
        "all"
    ].count


def mean_by_state(path):
    found = answered(path, [Metrics.MEAN], key="state", public=STATES)
    return {state: row.mean for state, row in found.items()}


def median(path):
    return answered(path, [Metrics.PERCENTILE(50)], public=["all"])["all"].percentile_50


def five_quantiles(path):
    found = answered(path, [Metrics.PERCENTILE(round(100 * q)) for q in QUANTILES], public=["all"])[
        "all"
    ]
    return [getattr(found, f"percentile_{round(100 * q)}") for q in QUANTILES]


def unknown_keys(path):
    found = answered(path, [Metrics.COUNT], key="word")
    return {word: row.count for word, row in found.items()}


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
