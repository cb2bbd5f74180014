"""Attacks on releases, for auditors and teachers. Each reports its success beside that of guessing,
and names people only on demand.

    link          finds names for rows, by a list with names
    difference    combines exact answers to the secret of one person
    census        finds the people behind published statistics
    single_out    finds conditions that exactly one person fulfils
    inference     guesses a missing column
    scoreboard    finds a person's sparse record by a few vague facts
    reconstruct   computes secret bits from many noisy counts
    membership    tells whether a person was in the data
    linkability   finds which two halves of records belong together

Each is a function with the name of its module, and a command of `discreet attack`. `lessons` tells
each as a story, which ends with the same attack against noise. Apart from `evaluate`, which uses
its dice, only the command line imports this package.
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
