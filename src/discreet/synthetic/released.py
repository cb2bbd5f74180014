"""Questions to released synthetic tables: the same SQL, with exact and free answers, because the
tables are public.
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
    """A planned question, to ask of tables that have the same columns."""

    plan: Plan
    workbench: Workbench

    def ask(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return the exact answer."""
        public = {name: tables[name] for name in self.plan.public}
        result = self.workbench.run(self.plan.after, public, seconds=_SECONDS)
        answer, _ = split(result, self.plan.columns)
        return answer


def prepare(sql: str, tables: Mapping[str, pa.Table], workbench: Workbench) -> ReadyQuestion:
    """Plan a question over tables; the language and the refusals are those of private tables."""
    declarations = {
        name: Table(name=name, public=True, owner=None, max_rows=1, max_groups=None, columns={})
        for name in tables
    }

    def run(query: str) -> pa.Table:
        return workbench.run(query, tables, seconds=_SECONDS)

    policy = replace(_PUBLIC, tables=declarations)
    return ReadyQuestion(plan(sql, policy, tables, run), workbench)


def ask(sql: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the exact answer to a question."""
    return prepare(sql, tables, Workbench()).ask(tables)
