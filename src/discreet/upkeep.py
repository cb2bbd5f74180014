"""Help the curator between questions: check a policy, read a snapshot's report, preview changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.binding import accountant_of, ledger_of, terms_of
from discreet.budget import Charge
from discreet.curator import Curator
from discreet.engines.advice import check as survey
from discreet.engines.report import report
from discreet.engines.stores import store_of
from discreet.errors import DiscreetError, PolicyError, Problem
from discreet.ledger import Ledger
from discreet.ledger.stores import is_there
from discreet.policy.policy import CURATOR, Policy, Table

if TYPE_CHECKING:
    from discreet.accounting import Accountant
    from discreet.engines.snapshot import Snapshot

Limits = tuple[Charge, dict[str, Charge]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The result of `check`: problems of a policy and its source, notes by title, the next step."""

    problems: tuple[Problem, ...]
    groups: Mapping[str, tuple[str, ...]]
    next: str


def check(policy: Policy) -> Checkup:
    """Compare a policy with its source, its ledger and its snapshots, without reading any value."""
    findings = survey(policy)
    if findings.problems:
        return Checkup(problems=findings.problems, groups=findings.groups, next="")
    groups = {title: tuple(notes) for title, notes in findings.groups.items()}
    budget = (*groups.get("The budget", ()), *_better_accountant(policy), *_limits_apart(policy))
    problems, published = _publications(policy)
    groups |= {"The budget": budget, "What is published": published}
    return Checkup(problems=problems, groups=groups, next=_next_step(policy))


def snapshot_report(made: Snapshot, policy: Policy) -> list[str]:
    """Return the report of a snapshot, for the curator's eyes only."""
    return report(made, policy)


def _better_accountant(declared: Policy) -> list[str]:
    """Say from how many questions on zcdp costs less; nothing if a ledger has fixed plain sums."""
    from discreet.accounting.calibrate import overtaking

    uses = declared.budget.accountant == "zcdp"
    if not declared.budget.delta or (not uses and is_there(ledger_of(declared))):
        return []
    count = overtaking(epsilon=declared.budget.epsilon, delta=declared.budget.delta)
    using = "this policy uses" if uses else "write"
    fixed = "" if uses else " It is fixed when the ledger is created."
    more = f"Beyond about {count} equal questions, {using} accountant: zcdp: it has smaller margins than plain sums."
    return [more + fixed]


def _publications(declared: Policy) -> tuple[tuple[Problem, ...], tuple[str, ...]]:
    """Return the problems and notes of releases and publications.

    They need the public tables, which a snapshot holds.
    """
    names = [*declared.releases, *declared.publications]
    if not names:
        return (), ()
    if not _has_snapshot(declared):
        return (), (
            f"{', '.join(names)}: not checked yet, they need a snapshot of these tables. Take one, then check again.",
        )
    curator = Curator(declared)
    problems: list[Problem] = []
    notes = []
    for look, among in (
        (curator.release, declared.releases),
        (curator.publication, declared.publications),
    ):
        for name in among:
            try:
                look(name)
            except PolicyError as error:
                problems += error.problems
            except DiscreetError as error:
                notes.append(f"{name}: {error}")
            else:
                verb = "release" if name in declared.releases else "publish"
                notes.append(
                    f"{name}: discreet {verb} quote {declared.path} {name} tells what it costs."
                )
    return tuple(problems), tuple(notes)


def _has_snapshot(declared: Policy) -> bool:
    """Return True if there is a ledger whose current snapshot fits today's policy."""
    numbers = store_of(declared).numbers()
    if not numbers or not is_there(ledger_of(declared)):
        return False
    with Ledger.open(ledger_of(declared), terms_of(declared)) as book:
        known = book.snapshot
    return known in numbers and store_of(declared).snapshot(known).digest == declared.digest


def _next_step(declared: Policy) -> str:
    """Return the curator's next command: a ledger, a snapshot, a question."""
    path = declared.path
    if not is_there(ledger_of(declared)):
        return f"discreet ledger {path} --create"
    store = store_of(declared)
    numbers = store.numbers()
    if not numbers:
        return f"discreet snapshot {path}"
    if store.snapshot(numbers[-1]).digest != declared.digest:
        return f"discreet snapshot {path}  (the tables are declared otherwise than in snapshot {numbers[-1]})"
    who = next(iter(declared.analysts), CURATOR)
    table = next(table.name for table in declared.tables.values() if not table.public)
    return f'discreet ask {path} "SELECT COUNT(*) FROM {table}" --analyst {who} --epsilon 0.1'


def _limits_apart(declared: Policy) -> list[str]:
    """Return the policy's limits that the ledger does not know yet."""
    if not is_there(ledger_of(declared)):
        return []
    terms = terms_of(declared)
    with Ledger.open(ledger_of(declared), terms) as book:
        if book.limits == (terms.limit, dict(terms.analysts)):
            return []
        changes = limit_changes(
            book.limits, (terms.limit, dict(terms.analysts)), accountant_of(declared)
        )
    apart = "The ledger has other limits than the policy, and the ledger's hold until discreet ledger POLICY --amend"
    return [f"{apart}: {'; '.join(changes)}."]


def limit_changes(before: Limits, after: Limits, accountant: Accountant) -> list[str]:
    """Return what an amendment changes: before and after, for everybody and each analyst."""
    found = []
    (limit, shares), (new_limit, new_shares) = before, after
    pairs: dict[str, tuple[Charge | None, Charge | None]] = {"all": (limit, new_limit)}
    pairs |= {
        name: (shares.get(name), new_shares.get(name))
        for name in dict.fromkeys((*shares, *new_shares))
    }
    for name, (old, new) in pairs.items():
        if old != new:
            was, is_now = (
                "nothing" if each is None else str(accountant.left(each)) for each in (old, new)
            )
            found.append(f"{name}: {was} before, {is_now} now")
    return found


# --- what a change of the policy would do ---------------------------------------------------------


def preview(before: Policy, after: Policy) -> list[str]:
    """Return in sentences what changes from one policy to another; by the two texts alone, never
    from data.
    """
    found = [*_changes_of_fixed(before, after), *_table_changes(before, after)]
    if before.digest != after.digest:
        found.append(
            "What tables mean changes: it needs a new snapshot (discreet snapshot), and every question is charged anew."
        )
    accountant, (old, new) = accountant_of(after), (terms_of(before), terms_of(after))
    if before.budget.accountant == after.budget.accountant:
        changes = limit_changes(
            (old.limit, dict(old.analysts)), (new.limit, dict(new.analysts)), accountant
        )
        found += [
            f"Budget of {change}: recorded by discreet ledger POLICY --amend." for change in changes
        ]
    for name in ("limits", "releases", "hierarchies", "publications"):
        if getattr(before, name) != getattr(after, name):
            found.append(f"{name}: declared otherwise.")
    return found


def _changes_of_fixed(before: Policy, after: Policy) -> Iterator[str]:
    """Yield changes to what a ledger is bound to for good (S2)."""
    for name in ("unit", "neighbors"):
        if getattr(before, name) != getattr(after, name):
            yield f"{name}: the ledger is bound to {getattr(before, name)}, and refuses any other."
    if before.budget.accountant != after.budget.accountant:
        yield f"budget.accountant: the ledger is bound to {before.budget.accountant}, and refuses any other."
    for name, table in before.tables.items():
        other = after.tables.get(name)
        if other is not None and other.owner != table.owner:
            yield f"{name}.owner: the ledger is bound to who owns its rows, and refuses another."


def _table_changes(before: Policy, after: Policy) -> Iterator[str]:
    for name in dict.fromkeys((*before.tables, *after.tables)):
        old = before.tables.get(name)
        new = after.tables.get(name)
        if old is None:
            yield f"{name}: a new table; it must be in the source."
        elif new is None:
            yield f"{name}: no longer there; questions about it are refused."
        else:
            yield from _column_changes(old, new)


def _column_changes(old: Table, new: Table) -> Iterator[str]:
    for limit in ("max_rows", "max_groups"):
        was = getattr(old, limit)
        now = getattr(new, limit)
        if was != now:
            effect = (
                "more noise, fewer rows left out"
                if (now or 0) > (was or 0)
                else "less noise, more rows left out"
            )
            yield f"{old.name}.{limit}: {was} before, {now} now: {effect}."
    for name in dict.fromkeys((*old.columns, *new.columns)):
        was = old.columns.get(name)
        now = new.columns.get(name)
        if was is None:
            yield f"{old.name}.{name}: a new column."
        elif now is None:
            yield f"{old.name}.{name}: no longer there; questions about it are refused."
        elif was != now:
            yield f"{old.name}.{name}: may hold other values than before. What lies outside is clamped or missing."
