"""Synthetic data: `describe` a table at a price, then `generate` rows and `inspect` for free.

describe       the planning, the price and the work of a description
description    the file that `describe` writes and the other verbs read
generate       rows from a description
compare        a description compared with its table, at a price
classify       a classifier from a description, to try on true rows
marginals      noisy counts, distances and choices, through the allowance
source         the expressions by which the engine reads a table
workload       the columns that questions need together
released       questions to released rows
columns/       axis (a column on its public grid), grids (lists and cuts found at a price)
synthesizers/  SYNTHESIZERS, the family; graphical (junction tree, estimation), smooth (histograms)
linked/        tables whose rows belong to rows of others
report/        pages, expected errors, figures; raw has exact scores, NOT FOR RELEASE
"""
