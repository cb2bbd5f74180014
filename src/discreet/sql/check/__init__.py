"""Prove a plan: derive how far one person can move each number, from what will run and the policy
alone (S24).

This room shares nothing with the analysis but the trees of `algebra`. From them it derives whose
each row is (`whose`), how many rows and groups one person can have (`counts`), and the
sensitivities of every statistic (`norms`). A plan that claims less is stopped before the charge
(`checker`). So the analysis may refuse or answer badly; it cannot understate a sensitivity. Why
this is right:

1. *Whose.* `algebra.owner_of` follows a source to its hidden owner; sources of two people cannot be
   joined, and every query keeps the owner. So each row is a function of rows of one person, and of
   public rows; where windows number rows, ties that could be seen are refused (`ties`).
2. *How many rows.* A scan has `max_rows`, which the snapshot enforces. A join multiplies, a union
   adds, a filter on a row number within the person cuts. A public row is met at most `meets` times,
   which the query enforces.
3. *How many groups.* A value that is computed from some of a person's sources takes at most as many
   values as there are combinations of their rows (`origins`).
4. *How far.* What one row adds to the numbers of a statistic is a polynomial in values that are
   held to ranges. In the Bernstein basis of those ranges it is a convex combination of finitely
   many vectors (`extremes`). A norm is convex, so it is largest at one of them; a person is at most
   `rows` such rows, in one group or in several.
"""
