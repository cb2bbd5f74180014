"""Several tables of the same people: one charge, one description, linked rows drawn from it."""
