"""Attacks on releases, for auditors and teachers: each tells its success beside chance, and names
nobody unasked.

    link          rows without names, and a list with names
    difference    a log of exact answers that combine to one person
    census        people from a page of statistics
    single_out    predicates true of exactly one person
    inference     the missing column
    scoreboard    sparse records, a few vague facts
    reconstruct   bits from many noisy counts
    membership    was this person in the data?
    linkability   two halves of a record

Each is a function here, of the same name as its module, and a verb of `discreet attack`. `lessons`
tells each as a story that ends with the same attack against noise. Nothing but the command line
imports this package.
"""

from __future__ import annotations

from discreet.attacks.census import census
from discreet.attacks.difference import difference
from discreet.attacks.experiment.finding import Finding, Rate, Risk, ceiling, wilson
from discreet.attacks.inference import inference
from discreet.attacks.link import link
from discreet.attacks.linkability import linkability
from discreet.attacks.membership import membership, trace
from discreet.attacks.reconstruct import reconstruct
from discreet.attacks.scoreboard import scoreboard
from discreet.attacks.single_out import single_out

ATTACKS = (
    link,
    scoreboard,
    difference,
    reconstruct,
    census,
    membership,
    single_out,
    linkability,
    inference,
)

__all__ = [
    "ATTACKS",
    "Finding",
    "Rate",
    "Risk",
    "ceiling",
    "census",
    "difference",
    "inference",
    "link",
    "linkability",
    "membership",
    "reconstruct",
    "scoreboard",
    "single_out",
    "trace",
    "wilson",
]
