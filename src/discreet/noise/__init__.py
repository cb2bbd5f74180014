"""Exact samplers over AES-256: the only package that draws private randomness.

`noise.bits` and `noise.exact` need the standard library only, and a respondent's device may have
nothing else. So this package imports each of the other modules when it is first used.

    stream        Stream, Items: the random words that every draw is made of
    sample        discrete_laplace, discrete_gaussian
    table         the tables from which those two draw
    exact         certified exp and log on integers
    tape          recording(): the only hook for tests
    choose        noisy_max, noisy_top: one choice
    choose_each   one choice for each of many items
    coins         bernoulli, bernoulli_exp, uniform, permutation: many draws at once
    bits          the same draws, one at a time
    texts         text_items: very many group keys at once
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.noise.choose import noisy_max as noisy_max
    from discreet.noise.choose import noisy_top as noisy_top
    from discreet.noise.coins import bernoulli as bernoulli
    from discreet.noise.coins import bernoulli_exp as bernoulli_exp
    from discreet.noise.coins import permutation as permutation
    from discreet.noise.coins import uniform as uniform
    from discreet.noise.sample import add_noise as add_noise
    from discreet.noise.sample import discrete_gaussian as discrete_gaussian
    from discreet.noise.sample import discrete_laplace as discrete_laplace
    from discreet.noise.stream import Items as Items
    from discreet.noise.stream import Stream as Stream
    from discreet.noise.tape import recording as recording
    from discreet.noise.texts import Texts as Texts
    from discreet.noise.texts import text_items as text_items

_HOME = {
    "Stream": "stream",
    "Items": "stream",
    "add_noise": "sample",
    "discrete_laplace": "sample",
    "discrete_gaussian": "sample",
    "noisy_max": "choose",
    "noisy_top": "choose",
    "bernoulli": "coins",
    "bernoulli_exp": "coins",
    "uniform": "coins",
    "permutation": "coins",
    "recording": "tape",
    "Texts": "texts",
    "text_items": "texts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'discreet.noise' has no attribute {name!r}")
    return getattr(import_module(f"discreet.noise.{_HOME[name]}"), name)
