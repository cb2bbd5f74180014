"""k-anonymity and its family: measure a table's risk, coarsen it as little as possible, and show
why that is not enough.

This package is independent of the rest of `discreet` and adds no noise. Nothing here is
differentially private.
"""

from discreet.anonymity.hierarchies import Bands, Cuts, Dates, Prefix, Tree
from discreet.anonymity.hierarchy_file import automatic, read
from discreet.anonymity.measure import Risk, risk
from discreet.anonymity.publish import Anonymized, anonymize
from discreet.anonymity.recoding.demand import Demand

__all__ = [
    "Anonymized",
    "Bands",
    "Cuts",
    "Dates",
    "Demand",
    "Prefix",
    "Risk",
    "Tree",
    "anonymize",
    "automatic",
    "read",
    "risk",
]
