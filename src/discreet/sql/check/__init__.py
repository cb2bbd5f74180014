"""Prove a plan: derive how far one person can move each number. The proof reads only the policy and
the trees that will run (S24).

This room shares nothing with the analysis but `algebra`: the trees, and which conditions exclude
each other. From a tree it derives

whose     that each row belongs to one person
ties      that where rows are stored changes nothing
counts    how many rows and groups one person can have
norms     how far one person can move the numbers of a statistic
checker   that no claim of a plan is lower than what was derived

`checker` stops a plan with a lower claim before the charge. So a mistake of the analysis may refuse
a question or give a bad answer, but it cannot understate a sensitivity. This is why the proof is
right:

1. *Whose.* `algebra.owner_of` follows a source to its hidden owner column. Rows of two people
   cannot be joined, and every query keeps the owner. So each row is a function of rows of one
   person and of public rows. Windows that number rows are refused if ties could be seen (`ties`).
2. *How many rows.* A scan has at most `max_rows` rows of a person; the snapshot enforces it. A join
   multiplies rows, a union adds them, and a filter on a person's row numbers limits them. A private
   row meets at most `meets` public rows; the query enforces it.
3. *How many groups.* A value is computed from rows of some sources. It takes at most as many values
   as there are combinations of the person's rows in those sources (`origins`).
4. *How far.* What one row adds to the numbers of a statistic is a polynomial in values with known
   ranges. In the Bernstein basis of those ranges it is a convex combination of finitely many
   vectors (`extremes`). A norm is convex, so it is largest at one of these vectors. A person has at
   most `rows` such rows, in one group or in several.
"""
