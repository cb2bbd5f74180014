"""Runs many statements and counts them by class and outcome; a violation is shrunk and told with
its world's name.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable

from discreet.sql.text.dialect import Dialect

from .check import Violation, verdict
from .grammar import Grammar
from .worlds import POLICIES, World, world

POSTGRES = 0.1  # of the statements: read as Postgres reads them
FUZZED = "counts of the fuzzer"  # the name under which tests record them


def run(
    count: int, *, seconds: float, each: int = 250, stop: int = 1, seed: str | None = None
) -> tuple[Counter[str], list[str]]:
    """Try `count` statements, or as many as fit into so many seconds of processor time; new ones
    without a seed.
    """
    counts: Counter[str] = Counter()
    found: list[str] = []
    began = time.process_time()
    names = list(POLICIES)
    for batch in range(-(-count // each)):
        source = random.Random(os.urandom(16) if seed is None else f"{seed} {batch}")
        here = world(names[batch % len(names)], source)
        grammar = Grammar("town" if here.name.startswith("town") else "shop", source)
        for _ in range(min(each, count - batch * each)):
            kind, sql = grammar.statement()
            dialect: Dialect = "postgres" if source.random() < POSTGRES else "duckdb"
            try:
                counts[f"{kind}: {verdict(sql, here, source, dialect=dialect)}"] += 1
            except Violation as violation:
                found.append(told(sql, here, source, violation, dialect))
                print(found[-1], flush=True)
                if len(found) >= stop:
                    return counts, found
            if time.process_time() - began > seconds:
                return counts, found
    return counts, found


def told(
    sql: str, here: World, source: random.Random, violation: Violation, dialect: Dialect
) -> str:
    def fails(text: str) -> bool:
        try:
            verdict(text, here, source, dialect=dialect)
        except Violation as again:
            return str(again)[:20] == str(violation)[:20]
        return False

    policy = "" if isinstance(POLICIES[here.name], str) else f"{here.text}\n"
    return f"{policy}{here.name}, {dialect}: {violation}\n  in: {shrunk(sql, fails)}"


def shrunk(sql: str, fails: Callable[[str], bool]) -> str:
    """The statement with every word left out that is not needed for the violation; spends a few
    seconds at most.
    """
    words, size, until = sql.split(" "), 16, time.monotonic() + 5
    while size:
        place = 0
        while place < len(words) and time.monotonic() < until:
            fewer = words[:place] + words[place + size :]
            if fewer and fails(" ".join(fewer)):
                words = fewer
            else:
                place += size
        size //= 2
    return " ".join(words)


def summary(counts: Counter[str]) -> str:
    """Counts by class of statement, then the most common refusals."""
    total = sum(counts.values())
    classes: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for name, count in counts.items():
        kind, outcome = name.split(": ", 1)
        refused = outcome.startswith("refused")
        classes[f"{kind}, {'refused' if refused else outcome}"] += count
        if refused:
            reasons[outcome.removeprefix("refused: ")] += count
    lines = [
        f"{total} statements",
        *(f"{count:7} {name}" for name, count in sorted(classes.items())),
    ]
    lines += [
        "refused most often because:",
        *(f"{count:7} {name}" for name, count in reasons.most_common(15)),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    import sys

    counted, violations = run(int(sys.argv[1]), seconds=float(sys.argv[2]), stop=int(sys.argv[3]))
    print(summary(counted))
    print("\n\n".join(violations) or "no violation")
