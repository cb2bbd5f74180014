"""How attacks compute: linear algebra, ranges, and the worlds that fit what was published."""
