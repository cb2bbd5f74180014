"""Questions to released synthetic tables: the same SQL, answered exactly and for free, because they
are public.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from discreet.engines.duckdb.workbench import Workbench
from discreet.policy.policy import Policy, Table
from discreet.sql.after.finish import split
from discreet.sql.analyze import plan
from discreet.sql.plan.plan import Plan

_SECONDS = 60.0
_PUBLIC = Policy.parse(
    "unit: row\ntables: {nobody: {owner: id}}\nbudget: {epsilon: 1}\n", path="released"
)


@dataclass(frozen=True, slots=True)
class ReadyQuestion:
    """A question that was read and found answerable, to be asked of tables that have the same
    columns.
    """

    plan: Plan
    workbench: Workbench

    def ask(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return the exact answer."""
        used = {name: tables[name] for name in self.plan.public}
        return split(
            self.workbench.run(self.plan.after, used, seconds=_SECONDS), self.plan.columns
        )[0]


def prepare(sql: str, tables: Mapping[str, pa.Table], workbench: Workbench) -> ReadyQuestion:
    """Read a question; what an analyst may write, and how it is refused, is the same as for private
    tables.
    """
    declared = {
        name: Table(name=name, public=True, owner=None, max_rows=1, max_groups=None, columns={})
        for name in tables
    }

    def run(query: str) -> pa.Table:
        return workbench.run(query, tables, seconds=_SECONDS)

    return ReadyQuestion(plan(sql, replace(_PUBLIC, tables=declared), tables, run), workbench)


def ask(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the exact answer to a question."""
    return prepare(sql, tables, Workbench()).ask(tables)
