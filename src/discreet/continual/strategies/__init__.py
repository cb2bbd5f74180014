"""Which integer combinations of a stream get noise: the family of strategies."""
