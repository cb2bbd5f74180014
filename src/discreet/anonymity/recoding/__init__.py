"""How a table is coarsened: globally by levels, or locally class by class."""
