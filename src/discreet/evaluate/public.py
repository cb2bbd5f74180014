"""A description of a public table, made as one of a private table is: through a curator, in a
folder of its own.

What a curator would declare is taken from the table itself, which a private table's policy must
never do.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from discreet.binding import create_ledger
from discreet.curator import Curator
from discreet.errors import PolicyError, UsageError
from discreet.policy.policy import Policy
from discreet.synthetic.description import Description

DELTA = "1e-9"
_MOST_DIGITS = 6
_ROUNDING = 2e-7  # of what is stored in single precision, as a share of the largest number
_MOST_VALUES = 10_000


def describe_public(
    table: pa.Table,
    *,
    name: str,
    epsilon: str,
    synthesizer: str,
    workload: Sequence[str] | None = None,
) -> Description:
    """Describe a public table once at this ε, every row a person; each call draws fresh noise."""
    with tempfile.TemporaryDirectory(prefix="discreet-parity-") as folder:
        path = Path(folder) / "policy.yaml"
        owner = _free_name(table)
        path.write_text(
            policy_text(table, name=name, owner=owner, epsilon=epsilon), encoding="utf-8"
        )
        policy = _policy(path)
        create_ledger(policy)
        rows = table.append_column(owner, pa.array(np.arange(table.num_rows)))
        curator = Curator(policy, tables={name: rows})
        return curator.describe(name, epsilon=epsilon, synthesizer=synthesizer, workload=workload)


def _policy(path: Path) -> Policy:
    """Read the policy; what it refuses, such as a quote in a column's name, is about the public
    table.
    """
    try:
        return Policy.read(path)
    except PolicyError as error:
        why = " ".join(problem.message for problem in error.problems)
        raise UsageError(f"The public table cannot be described: {why}") from None


def policy_text(table: pa.Table, *, name: str, owner: str, epsilon: str) -> str:
    """Write a policy for a public table, with the domains that its columns have."""
    lines = [
        "unit: row",
        "tables:",
        f"  {json.dumps(name)}:",
        f"    owner: {owner}",
        "    columns:",
        f"      {owner}: {{identifier: true}}",
    ]
    for column in table.column_names:
        lines.append(f"      {json.dumps(column)}: {domain_text(column, table.column(column))}")
    lines += [
        f"budget: {{epsilon: {epsilon}, delta: {DELTA}, accountant: zcdp, keys: 0}}",
        f"limits: {{epsilon: {epsilon}, seconds: 600}}",
    ]
    return "\n".join(lines) + "\n"


def domain_text(name: str, values: pa.ChunkedArray) -> str:
    """Write the domain of a public column as a policy writes it."""
    kind = values.type
    known = values.drop_null()
    nullable = ", nullable: true" if values.null_count else ""
    if not len(known):
        raise UsageError(
            f"{name} has no value at all. Leave it out: list the others under `columns`."
        )
    if pa.types.is_boolean(kind):
        return f"{{boolean: true{nullable}}}"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        listed = sorted(pc.unique(known).to_pylist())
        if len(listed) > _MOST_VALUES:
            raise UsageError(
                f"{name} has {len(listed):,} texts, more than a description lists. Leave it out."
            )
        return f"{{values: {json.dumps(listed, ensure_ascii=False)}{nullable}}}"
    if pa.types.is_date(kind):
        ends = pc.min_max(known.cast(pa.date32()))
        return f"{{date: [{ends['min']}, {ends['max']}]{nullable}}}"
    if pa.types.is_timestamp(kind):
        days = pc.min_max(known.cast(pa.timestamp("us")).cast(pa.date32(), safe=False)).as_py()
        return (
            f"{{timestamp: [{days['min']}, {days['max'] + timedelta(days=1)}], step: 1s{nullable}}}"
        )
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise UsageError(f"{name} is of a kind that parity cannot describe ({kind}). Leave it out.")
    numbers = known.cast(pa.float64(), safe=False).to_numpy()
    if not np.isfinite(numbers).all():
        raise UsageError(f"{name} holds a number that is not finite. Leave it out.")
    low = float(numbers.min())
    high = float(numbers.max())
    digits = _digits(numbers)
    if digits == 0:
        return f"{{integer: [{round(low)}, {max(round(high), round(low) + 1)}]{nullable}}}"
    step = _step(numbers, digits)
    first, last = (step * round(each / float(step)) for each in (low, high))
    return f"{{decimal: [{first}, {max(last, first + step)}], step: {step}{nullable}}}"


def _step(numbers: np.ndarray, digits: int) -> Decimal:
    """Return the widest grid on which all the numbers lie."""
    whole = np.unique(np.rint(numbers * 10.0**digits)).astype(np.int64)
    return Decimal(max(1, int(np.gcd.reduce(whole)))).scaleb(-digits)


def _digits(numbers: np.ndarray) -> int:
    """Count the decimal places that the numbers have, beyond what single precision makes of
    them.
    """
    reach = _ROUNDING * max(1.0, float(np.abs(numbers).max()))
    for digits in range(_MOST_DIGITS):
        if np.abs(numbers - np.round(numbers, digits)).max() <= reach:
            return digits
    return _MOST_DIGITS


def _free_name(table: pa.Table) -> str:
    """Return a name for the column of owners that the table does not have."""
    taken = {each.lower() for each in table.column_names}
    name = "row_number"
    while name in taken:
        name += "_"
    return name
