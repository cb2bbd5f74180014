"""The family of synthesizers: each is a function from counts asked through an allowance to a
model.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.synthetic.marginals import Marginals
from discreet.synthetic.synthesizers.aim import aim
from discreet.synthetic.synthesizers.default import default
from discreet.synthetic.synthesizers.independent import Synthesis, independent, random
from discreet.synthetic.synthesizers.mst import mst
from discreet.synthetic.synthesizers.privbayes import privbayes

Synthesizer = Callable[[Marginals], Synthesis]

SYNTHESIZERS: dict[str, Synthesizer] = {
    "random": random,
    "independent": independent,
    "privbayes": privbayes,
    "mst": mst,
    "aim": aim,
    "default": default,
}
DEFAULT = "default"
FOR_WORKLOADS = ("independent", "aim", "default")  # those that look at what will be asked
