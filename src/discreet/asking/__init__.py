"""From a plan to its answer: what it costs, how it is explained, carried out and seen."""
