"""The curator's own work: descriptions, comparisons, releases and publications, each through the
same door as a question.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from discreet.asking.view import View
from discreet.asking.visit import Visit
from discreet.binding import find_declared
from discreet.door import Request, make_allowance
from discreet.policy.policy import CURATOR
from discreet.vault.allowance import Allowance

if TYPE_CHECKING:
    from discreet.census.running import PublicationRun
    from discreet.continual.running import Release
    from discreet.synthetic.describe import CarryOut, Commission, Purse
    from discreet.synthetic.linked.lot import Lot


def purse_of(view: View, epsilon: object) -> Purse:
    """Return an amount to be spent by an algorithm."""
    from discreet.synthetic.describe import Purse

    return Purse(accountant=view.accountant, amount=view.amount(epsilon), limit=view.limit)


def pay_lump(visit: Visit, work: Commission | Lot, carry_out: CarryOut, *, analyst: str) -> bytes:
    """Charge first, then let an algorithm choose as it goes within what was charged; return the
    bytes of its answer.
    """
    view, door = visit.view, visit.door
    view.require_process()
    request = Request(
        analyst=analyst,
        question=work.question,
        text=work.text,
        cost=work.cost,
        mechanisms=None,
        inside=work.inside,
        paid=work.paid,
        meta=work.meta,
    )
    told = {**view.certificate_head(work.cost), "max_rows": work.max_rows, **work.meta}
    fetch = partial(view.fetch, until=door.until)

    def act(allowance: Allowance, charge: int) -> bytes:
        return carry_out(allowance, fetch, {**told, "charge": charge})

    return door.through(request, act, pack=bytes, unpack=bytes).made


def open_release(visit: Visit, name: str, *, source: object) -> Release:
    """Return a scheduled release of the policy, to start, run and show."""
    from discreet.continual.question import question
    from discreet.continual.running import Release

    view = visit.view
    door = visit.door
    policy = visit.policy
    view.require_process()
    door.standing(CURATOR)
    schedule = find_declared("release", name, policy.releases)
    return Release(
        policy=policy,
        schedule=schedule,
        asked=question(schedule, policy, view.public, view.of_public),
        accountant=visit.accountant,
        ledger=door.ledger,
        pay=door.begin_stream,
        allow=make_allowance,
        source=source,
    )


def open_publication(visit: Visit, name: str) -> PublicationRun:
    """Return a publication of the policy, to quote, run and show."""
    from discreet.census.plan import plan
    from discreet.census.publication import Publication
    from discreet.census.running import Make, PublicationRun

    view = visit.view
    door = visit.door
    policy = visit.policy
    view.require_process()
    door.standing(CURATOR)
    terms = find_declared("publication", name, policy.publications)
    planned = plan(policy, terms, view.public, visit.accountant)
    names = ", ".join(planned.names)
    request = Request(
        analyst=CURATOR,
        question=planned.question,
        text=f"publish {name}: {names} of {terms.table} by {terms.hierarchy.name}",
        cost=planned.cost,
        mechanisms=planned.mechanisms,
        inside=visit.accountant,
        paid=planned.cost,
    )
    unpack = partial(Publication.from_bytes, plan=planned)

    def pay(work: Make) -> Publication:
        return door.through(request, work, pack=Publication.to_bytes, unpack=unpack).made

    return PublicationRun(
        plan=planned,
        accountant=visit.accountant,
        told=view.certificate_head(planned.cost),
        left=lambda: visit.accountant.left(door.standing(CURATOR).left),
        fetch=partial(view.fetch, until=door.until),
        pay=pay,
        recall=lambda: door.recall(request, unpack),
    )
