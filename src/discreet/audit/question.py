"""A question audited on the curator's own data: neighbors, record and replay, and what runs prove
of its ε.

For the curator alone: it reads the snapshot exactly and says how far single people move it. It
charges nothing and writes nothing to the ledger, because nothing of it may be released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from discreet.accounting import Accountant
from discreet.asking.measure import measure
from discreet.asking.offer import Offer, offer
from discreet.audit import replay
from discreet.audit.change import Change, changes
from discreet.audit.chosen import Targets
from discreet.audit.epsilon import AuditFinding, Codes, check, count, finding, interval
from discreet.audit.neighbors import Neighborhood, neighborhood
from discreet.audit.runs import Outcomes, outcomes
from discreet.binding import accountant_of, ledger_of, terms_of
from discreet.budget import Budget, Loss, amount
from discreet.engines.duckdb.workbench import Workbench
from discreet.engines.quoting import name
from discreet.engines.stores import store_of
from discreet.errors import Rejected, UsageError
from discreet.ledger import Ledger
from discreet.ledger.chain import fresh_secret
from discreet.mechanisms import to_row
from discreet.policy.policy import Policy
from discreet.sql.analyze import plan
from discreet.sql.plan.block import Block, Shared
from discreet.sql.plan.plan import Plan
from discreet.vault.allowance import Allowance
from discreet.vault.exact import Exact

Progress = Callable[[str, float], None]

_PILOTS = 4  # pairs of neighbors that are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayResult:
    """One pair of neighbors under the same draws: how many there were, and what differed that must
    not.
    """

    pair: tuple[str, str]
    draws: int
    differences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Support:
    """Outcomes of a statistic that one neighbor cannot have: allowed with probability δ, and no
    more.
    """

    statistic: str
    seen: int
    runs: int
    least: float  # a lower bound on their probability
    delta: float

    @property
    def sound(self) -> bool:
        return self.least <= self.delta


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """The frequency of each outcome on either neighbor, in bins from least to most telling."""

    name: str
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAudit:
    """Everything that the audit of a question found. Not for release: `changes` tells about single
    people.
    """

    sql: str
    neighbors: str
    snapshot: int
    cost: Budget
    tried: tuple[tuple[str, str], ...]
    pair: tuple[str, str]
    changes: tuple[Change, ...]
    replayed: tuple[ReplayResult, ...]
    support: tuple[Support, ...]
    findings: tuple[AuditFinding, ...]
    pictures: tuple[Picture, ...]

    @property
    def sound(self) -> bool:
        return (
            all(each.within for each in self.changes)
            and not any(each.differences for each in self.replayed)
            and all(each.sound for each in self.support)
            and all(each.sound for each in self.findings)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Leavers:
    """The people to take away, one after another, up to `most` in all: those named by their
    identifiers, some with a row that meets `where`, and others whom the question measures.
    """

    most: int
    persons: tuple[str, ...] = ()
    where: str | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.most <= 1_000:
            raise UsageError(
                f"An audit takes from 1 to 1,000 people away, one after another, not {self.most}."
            )
        if len(self.persons) > 1_000:
            raise UsageError("An audit takes at most 1,000 people away who are named by --person.")


def audit_question(
    policy: Policy,
    sql: str,
    *,
    epsilon: object,
    runs: int,
    confidence: float,
    leavers: Leavers,
    progress: Progress | None = None,
) -> QuestionAudit:
    """Audit one question at one epsilon on the newest snapshot and its neighbors."""
    check(runs=runs, confidence=confidence)
    accountant = accountant_of(policy)
    with Ledger.open(ledger_of(policy), terms_of(policy)) as ledger:
        number = ledger.snapshot
    if number == 0:
        raise UsageError("There is no snapshot to audit on yet. Take one: discreet snapshot.")
    offered = _offer(policy, number, sql, accountant, epsilon)
    wanted = Targets(
        people=leavers.most,
        persons=leavers.persons,
        matching=None if leavers.where is None else _matching(policy, number, leavers.where),
        measured=tuple(
            each.block for each in offered.blocks if not isinstance(each.block.kind, Shared)
        ),
    )
    with neighborhood(policy, number, wanted=wanted) as around:
        changed = tuple(_changes(offered, around, progress))
        replayed = tuple(_replay(offered, accountant, around, pair) for pair in around.pairs)

        def run(pair: tuple[str, str], times: int) -> list[Outcomes]:
            fetches = (partial(around.fetch, pair[0]), partial(around.fetch, pair[1]))
            return list(outcomes(offered, accountant, fetches, runs=times, progress=progress))

        pair = _telling(changed, around, partial(run, times=max(1_000, runs // 50)))
        found = run(pair, runs)
    return QuestionAudit(
        sql=sql,
        neighbors=policy.neighbors,
        snapshot=number,
        cost=accountant.budget(offered.cost),
        tried=around.pairs,
        pair=pair,
        changes=changed,
        replayed=replayed,
        support=tuple(_support(each, confidence) for each in found if any(each.impossible)),
        findings=_findings(found, confidence),
        pictures=tuple(_picture(each) for each in found),
    )


def _offer(policy: Policy, number: int, sql: str, accountant: Accountant, epsilon: object) -> Offer:
    """Plan and price the question as `Curator.ask` would, without asking it."""
    spend = accountant.allot(epsilon=amount(epsilon, name="epsilon", most=policy.limits.epsilon))
    found = _plan(policy, number, sql)
    if not found.blocks:
        raise UsageError("This question is about public tables only: there is nothing to audit.")
    return offer(found, accountant, amount=spend, limit=terms_of(policy).limit)


def _plan(policy: Policy, number: int, sql: str) -> Plan:
    engine = store_of(policy).open(number)
    workbench = Workbench()
    public = {
        name: engine.public_table(name) for name, table in policy.tables.items() if table.public
    }
    engine.close()

    def of_public(text: str) -> pa.Table:
        return workbench.run(text, public, seconds=float(policy.limits.seconds))

    return plan(sql, policy, public, of_public)


def _matching(policy: Policy, number: int, where: str) -> tuple[Block, ...]:
    """Plan the rows that meet a condition in every table that has its columns; raise if no table
    has.
    """
    found = list[Block]()
    refused = list[Rejected]()
    for table in policy.tables.values():
        if not table.public:
            try:
                found += _plan(
                    policy, number, f"SELECT COUNT(*) FROM {name(table.name)} WHERE {where}"
                ).blocks
            except Rejected as error:
                refused.append(error)
    if not found:
        told = " ".join(f"{error.reason} {error.hint}" for error in refused[:1])
        raise UsageError(f"No private table can be read by --where {where}: {told}")
    return tuple(found)


def _changes(offered: Offer, around: Neighborhood, progress: Progress | None) -> list[Change]:
    own = [each.block for each in offered.blocks if not isinstance(each.block.kind, Shared)]
    found = list[Change]()
    for index, pair in enumerate(around.pairs):
        for block in own:
            found += changes(block, around.fetch, [pair])
        if progress is not None:
            progress("neighbors", (index + 1) / len(around.pairs))
    return found


def _replay(
    offered: Offer, accountant: Accountant, around: Neighborhood, pair: tuple[str, str]
) -> ReplayResult:
    def on(name: str) -> Callable[[Callable[[Allowance], Any]], object]:
        def work(witness: Callable[[Allowance], Any]) -> object:
            allowance = Allowance(key=fresh_secret(), accountant=accountant, paid=offered.cost)
            return measure(offered, witness(allowance), lambda sql: Exact(around.fetch(name, sql)))

        return work

    first, _ = replay.record(on(pair[0]))
    second, _ = replay.record(on(pair[1]), replay=first)
    differ = (
        *replay.differences(first, second),
        *replay.find_shared_noise(first),
        *replay.find_shared_noise(second),
    )
    return ReplayResult(pair=pair, draws=first.draws, differences=differ)


def _telling(
    found: tuple[Change, ...],
    around: Neighborhood,
    run: Callable[[tuple[str, str]], list[Outcomes]],
) -> tuple[str, str]:
    """Return the pair to run: of those that move most, the one whose outcomes a few runs tell apart
    best.

    These runs judge nothing. Among pairs that move as far, whoever is at the end of every range
    comes first. Somebody who is alone with a key moves much and shows little, because the key does
    not pass its threshold.
    """
    sums = {
        pair: math.fsum(each.least for each in found if each.pair == pair) for pair in around.pairs
    }
    first = sorted(sums, key=lambda pair: -sums[pair])[:_PILOTS]
    return max(first, key=lambda pair: math.fsum(_apart(each) for each in run(pair)))


def _apart(each: Outcomes) -> float:
    """Return the total variation distance of what came out."""
    _, a, b = count(*each.codes)
    return float(np.abs(a - b).sum()) / (2 * len(each.codes[0]))


def _loss(mechanisms: tuple[Any, ...]) -> Loss:
    """Add up the cost of several mechanisms."""
    losses = [each.loss() for each in mechanisms]
    delta = sum((each.delta for each in losses), Fraction(0))
    if all(each.epsilon is not None for each in losses):
        return Loss(
            epsilon=sum((each.epsilon for each in losses), Fraction(0)), rho=None, delta=delta
        )
    return Loss(epsilon=None, rho=sum((each.rho for each in losses), Fraction(0)), delta=delta)


def _findings(found: list[Outcomes], confidence: float) -> tuple[AuditFinding, ...]:
    """Return what is proved of each statistic and, where there are several, of all of them as one
    answer.
    """
    each_at = 1 - (1 - confidence) / (len(found) + 1)
    findings = [_finding(each, each_at) for each in found]
    if len(found) > 1:
        whole = _together(found)
        loss = _loss(tuple(mechanism for each in found for mechanism in each.mechanisms))
        findings.append(finding("the whole answer", {}, whole, loss=loss, confidence=each_at))
    return tuple(findings)


def _finding(each: Outcomes, confidence: float) -> AuditFinding:
    row = to_row(each.mechanisms[0]) if len(each.mechanisms) == 1 else {}
    if len(each.mechanisms) > 1:
        row = {"mechanism": ", ".join(type(mechanism).__name__ for mechanism in each.mechanisms)}
    return finding(each.name, row, each.codes, loss=_loss(each.mechanisms), confidence=confidence)


def _together(found: list[Outcomes]) -> tuple[Codes, Codes]:
    """Encode all statistics of a run as one: the sum of what each tells, learnt from the half that
    judges nothing.
    """
    runs = min(len(each.codes[0]) for each in found)
    total = [np.zeros(runs), np.zeros(runs)]
    for each in found:
        first, second = (codes[:runs] for codes in each.codes)
        values, a, b = count(first[: runs // 2], second[: runs // 2])
        tells = np.log((a + 1) / (b + 1))
        for side, codes in enumerate((first, second)):
            place = np.minimum(np.searchsorted(values, codes), len(values) - 1)
            total[side] += np.where(values[place] == codes, tells[place], 0.0)
    return np.round(total[0] * 16).astype(np.int64), np.round(total[1] * 16).astype(np.int64)


def _support(each: Outcomes, confidence: float) -> Support:
    seen = max(each.impossible)
    runs = len(each.codes[0])
    least, _ = interval((seen, 0), runs, alpha=1 - confidence)
    return Support(
        statistic=each.name,
        seen=seen,
        runs=runs,
        least=least,
        delta=float(_loss(each.mechanisms).delta),
    )


def _picture(each: Outcomes, bins: int = 41) -> Picture:
    """Sort outcomes by how telling they are, in bins of about equal weight at the ends and in the
    middle.
    """
    _, a, b = count(*each.codes)
    tells = np.log((a + 1) / (b + 1))
    low = float(tells.min())
    high = float(tells.max())
    place = np.minimum(((tells - low) / max(high - low, 1e-9) * bins).astype(np.int64), bins - 1)
    one, other = (
        np.bincount(place, weights=counts, minlength=bins).astype(int).tolist() for counts in (a, b)
    )
    return Picture(name=each.name, first=tuple(one), second=tuple(other))
