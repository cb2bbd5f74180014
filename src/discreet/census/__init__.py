"""Publications: tables of a whole hierarchy of places, published at once for one charge, that add
up.

`places` is the tree of places, and `grid` has the columns and tables. `split` divides the budget,
and `plan` puts these together and prices them. `measure` reads counts and adds noise.
`solve.least_squares` combines the noisy tables, and `solve.whole` turns them into whole numbers
from the top down. `errors` computes their margins, `publication` is the result, and `page` shows
it.
"""
