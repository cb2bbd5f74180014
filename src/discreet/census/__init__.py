"""Tables that add up: a whole hierarchy of places published at once, for one charge.

`places` is the tree, `grid` the columns and tables, `split` shares out the budget, `plan` puts them
together and prices them, `measure` reads and adds noise, `least_squares` combines what was
measured, `whole` makes whole numbers from the top down, `errors` says how wrong they are,
`publication` holds what leaves, `page` shows it.
"""
