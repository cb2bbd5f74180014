"""Make a table k-anonymous: read it, recode it, check the result, and only then publish it.

The finished table or file is measured again, and published only if it keeps the promise. Its rows
are sorted by the values that they show, because the order of the original could tell who is who.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from discreet.anonymity import information_loss as losses
from discreet.anonymity import output
from discreet.anonymity.failures import failures
from discreet.anonymity.guarantee import Guarantee
from discreet.anonymity.hierarchies import Hierarchy, Spec, build
from discreet.anonymity.hierarchy_file import automatic
from discreet.anonymity.information_loss import Losses
from discreet.anonymity.measure import about, by_size, classes_of
from discreet.anonymity.output import (
    Labels,
    OutputFile,
    PromiseBroken,
    TableFacts,
    TableRecoding,
    labels,
)
from discreet.anonymity.recoding import recode_global, recode_local
from discreet.anonymity.recoding.demand import Demand, RecodingKind, check_columns, guarantee_of
from discreet.anonymity.recoding.lattice import Recoding, RowGroups, encode
from discreet.anonymity.recoding.suppress import telling_columns
from discreet.anonymity.report.report import Report
from discreet.anonymity.source import Groups, SourceTable, open_table
from discreet.anonymity.utility import utility
from discreet.policy.document import nearest

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymized:
    """An anonymized table with its promise. `k`, `l` and `t` were measured on it. `table` is None
    if it was written to a file.

    `transformation` has, for each column, the level of all rows (global recoding), or the share of
    rows on each level (local recoding).
    """

    table: pa.Table | None
    guarantee: Guarantee
    k: int
    l: int | None  # noqa: E741
    t: float | None
    rows: int
    classes: int
    suppressed: int
    loss: Losses
    recoding: RecodingKind
    optimal: bool
    searched: int
    transformation: Mapping[str, str | Mapping[str, float]]
    kept: tuple[str, ...]
    warnings: tuple[str, ...]
    report: Report | None = None

    def as_json(self) -> dict[str, object]:
        levels = {
            name: each if isinstance(each, str) else dict(each)
            for name, each in self.transformation.items()
        }
        return {
            "k": self.k,
            "l": self.l,
            "t": self.t,
            "loss": self.loss.as_json(),
            "suppressed": self.suppressed,
            "transformation": levels,
            "rows": self.rows,
            "classes": self.classes,
            "guarantee": str(self.guarantee),
            "recoding": self.recoding,
            "optimal": self.optimal,
            "searched": self.searched,
            "kept_as_they_are": list(self.kept),
            "warnings": list(self.warnings),
            **({} if self.report is None else {"report": self.report.as_json()}),
        }


def anonymize(
    data: pa.Table | str | Path,
    demand: Demand,
    *,
    hierarchies: Mapping[str, Spec] | None = None,
    weights: Mapping[str, float] | None = None,
    drop: Sequence[str] = (),
    out: str | Path | None = None,
    report: bool = False,
    progress: Progress | None = None,
) -> Anonymized:
    """Coarsen the quasi-identifiers until every class of people who look alike meets the demand.

    Guarantee
        Each published row has the same quasi-identifiers as at least k - 1 others. With `l` each
        class is l-diverse, and with `t` t-close, in the sensitive column. This is checked on the
        finished table.
    What it is not
        It does not protect against somebody who knows more than the quasi-identifiers. See
        docs/anonymity.md.
    """
    target = None if out is None else OutputFile.at(Path(out), data)
    with open_table(data) as source:
        check_columns(source, demand, drop, weights)
        groups = source.groups(demand.watched)
        built = levels_of(demand.quasi, groups, hierarchies)
        guarantee = guarantee_of(demand, groups, hierarchies)
        costs = losses.costs(demand.loss, built, groups, weights)
        recoded = _recode(
            encode(groups, built, costs, sensitive_column(demand)), guarantee, demand, progress
        )
        made = TableRecoding(
            groups=groups,
            hierarchies=built,
            recoded=recoded,
            shown=_labels(built, groups, recoded, demand.recoding),
        )
        with output.write(source, output.query(source, made, drop), target) as finished:
            found = _measure_again(finished, guarantee, demand, source)
            told = _report(finished, demand, source, made, found) if report else None
        return Anonymized(
            table=finished if isinstance(finished, pa.Table) else None,
            guarantee=guarantee,
            k=int(found.sizes.min()) if found.classes else 0,
            l=found.l,
            t=found.t,
            rows=found.rows,
            classes=found.classes,
            suppressed=source.rows - found.rows,
            loss=losses.measure_losses(built, groups, recoded.levels, recoded.classes, made.spans),
            recoding=demand.recoding,
            optimal=recoded.optimal,
            searched=recoded.searched,
            transformation=_transformation(built, groups, recoded, demand.recoding),
            kept=tuple(name for name in source.types if name not in (*demand.quasi, *drop)),
            warnings=(
                *_misspelt(hierarchies, source),
                *telling_columns(source, quasi=demand.quasi, sensitive=demand.sensitive, drop=drop),
            ),
            report=told,
        )


def _labels(
    built: Sequence[Hierarchy], groups: Groups, recoded: Recoding, kind: RecodingKind
) -> tuple[Labels, ...]:
    return tuple(
        labels(
            each,
            groups.codes[i],
            recoded.levels[i],
            recoded.classes,
            tight=each.tight and kind == "local",
        )
        for i, each in enumerate(built)
    )


def _misspelt(hierarchies: Mapping[str, Spec] | None, source: SourceTable) -> list[str]:
    """Return warnings about hierarchies whose name is nearly that of a column. Other unknown names
    may be for other tables.
    """
    others = {
        name: nearest(name, source.types) for name in hierarchies or () if name not in source.types
    }
    return [
        f"There is a hierarchy for {name}, which the table does not have. {meant}"
        for name, meant in others.items()
        if meant.startswith("Did you mean")
    ]


def sensitive_column(demand: Demand) -> str | None:
    """Return the sensitive column, if anything is promised about it."""
    return demand.sensitive if demand.watched != demand.quasi else None


def levels_of(
    quasi: Sequence[str], groups: Groups, hierarchies: Mapping[str, Spec] | None
) -> list[Hierarchy]:
    """Return a hierarchy for each quasi-identifier: the given one, or else an automatic one."""
    specs = hierarchies or {}
    return [
        build(specs[name] if name in specs else automatic(name, values), name, values)
        for name, values in zip(quasi, groups.values[: len(quasi)], strict=True)
    ]


def _recode(
    table: RowGroups, guarantee: Guarantee, demand: Demand, progress: Progress | None
) -> Recoding:
    allowed = int(demand.suppress * table.counts.sum())
    if demand.recoding == "global":
        return recode_global.recode(table, guarantee, most_suppressed=allowed, measure=demand.loss)
    return recode_local.recode(table, guarantee, most_suppressed=allowed, progress=progress)


def _measure_again(
    finished: pa.Table | Path, guarantee: Guarantee, demand: Demand, original: SourceTable
) -> TableFacts:
    """Measure k, l and t of the finished table, as every reader could; raise if it breaks the
    promise.
    """
    name = demand.sensitive
    with open_table(finished, types=_read_as(demand, original.types), beside=original) as source:
        groups = source.groups([*demand.quasi, *([] if name is None else [name])])
    classes, number = classes_of(groups, len(demand.quasi))
    sensitive = None if name is None else groups.codes[-1]
    if not guarantee.kept(classes, number, sensitive, groups.counts):
        raise PromiseBroken(
            f"The finished table does not have {guarantee}. Nothing was written; please report it."
        )
    diverse = None if name is None or not number else about(groups, name, classes, number, None)
    ground = guarantee.closeness.ground if guarantee.closeness else ""
    sizes = np.bincount(classes, groups.counts, number).astype(np.int64)
    return TableFacts(
        rows=int(sizes.sum()),
        classes=number,
        sizes=sizes,
        l=None if diverse is None else diverse.l,
        t=None if diverse is None else diverse.t_by.get(ground, diverse.t),
    )


def _read_as(demand: Demand, types: Mapping[str, str]) -> dict[str, str]:
    """Return the types by which to read a finished CSV file: labels as text, the secret with its
    type in the source.
    """
    secret = {} if demand.sensitive is None else {demand.sensitive: types[demand.sensitive]}
    return {**dict.fromkeys(demand.quasi, "VARCHAR"), **secret}


def _report(
    finished: pa.Table | Path,
    demand: Demand,
    original: SourceTable,
    made: TableRecoding,
    found: TableFacts,
) -> Report:
    classes, number = classes_of(made.groups, len(demand.quasi))
    before = np.bincount(classes, made.groups.counts, number).astype(np.int64)
    with open_table(finished, types=_read_as(demand, original.types), beside=original) as source:
        failed = failures(source, quasi=demand.quasi, secret=demand.sensitive)
    return Report(
        before=by_size(before),
        after=by_size(found.sizes),
        unique_before=int((before == 1).sum()),
        utility=utility(made),
        failures=failed,
    )


def _transformation(
    built: Sequence[Hierarchy], groups: Groups, recoded: Recoding, kind: RecodingKind
) -> dict[str, str | Mapping[str, float]]:
    found: dict[str, str | Mapping[str, float]] = {}
    kept = recoded.classes >= 0
    for hierarchy, levels in zip(built, recoded.levels, strict=True):
        if kind == "global":
            found[hierarchy.column] = hierarchy.names[int(levels[0])]
            continue
        rows = np.bincount(levels[kept], groups.counts[kept], hierarchy.height + 1)
        shares = rows / max(1.0, rows.sum())
        found[hierarchy.column] = {
            name: float(share) for name, share in zip(hierarchy.names, shares, strict=True) if share
        }
    return found
