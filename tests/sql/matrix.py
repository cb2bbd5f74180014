"""Print which combinations of aggregate, relation and clause are answered: `cd tests && python -m
sql.matrix`.

With --write, write the sensitivities under every question of plans.sql anew.
"""

from __future__ import annotations

import sys
from collections import Counter

from . import harness


def main(arguments: list[str]) -> None:
    if "--write" in arguments:
        _write()
    cases = harness.cases()
    for policy in dict.fromkeys(case.policy for case in cases):
        _print_policy(policy, [case for case in cases if case.policy == policy])
    print(f"{len({case.id for case in cases})} combinations; {len(harness.refusals())} refusals")


def _print_policy(policy: str, cases: list[harness.Case]) -> None:
    print(f"== {policy}: {len(cases)} questions")
    for aggregate in dict.fromkeys(case.aggregate for case in cases):
        own = [case for case in cases if case.aggregate == aggregate]
        print(f"{aggregate} ({len(own)})")
        for relation, count in Counter(case.relation for case in own).items():
            clauses = ", ".join(case.clause for case in own if case.relation == relation)
            print(f"    {relation} ({count}): {clauses}")


def _write() -> None:
    """Every question followed by what it measures."""
    file = harness.HERE / "plans.sql"
    lines: list[str] = []
    remaining = iter(harness.cases(file))
    pending = False
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("-->"):
            continue
        lines.append(line)
        pending = pending or (bool(line.strip()) and not line.startswith("--"))
        if pending and line.endswith(";"):
            lines += [f"--> {each}" for each in harness.expected(next(remaining))]
            pending = False
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
