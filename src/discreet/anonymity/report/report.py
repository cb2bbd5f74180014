"""The numbers of the report: the cost of anonymizing a table, and the attacks that it does not
stop.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from discreet.anonymity.failures import Failures
from discreet.anonymity.utility import Utility


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """`before` and `after`: how many rows are in classes of each size, and how many rows were
    unique.
    """

    before: Mapping[str, int]
    after: Mapping[str, int]
    unique_before: int
    utility: Utility
    failures: Failures | None

    def as_json(self) -> dict[str, object]:
        return {
            "rows_by_class_size": {"before": dict(self.before), "after": dict(self.after)},
            "unique_before": self.unique_before,
            "utility": self.utility.as_json(),
            "failures": None if self.failures is None else self.failures.as_json(),
        }
