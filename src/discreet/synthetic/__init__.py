"""Synthetic data: describe (paid, through the curator's door), generate and inspect (free, from the
description).

axis           a column on its public grid
source         where the engine finds the columns
grids          lists and cuts found at a price
workload       what questions need
marginals      counts asked through the allowance
graphical      junction tree, propagation, estimation
smooth         noisy histograms made plausible
synthesizers   SYNTHESIZERS, the family
raw            exact scores, NOT FOR RELEASE
describe       what is planned, paid and done
description    the file between the verbs
generate       rows from a description
released       questions to released rows
errors         what error to expect
inspect        figures, from the description alone
compare        real against synthetic, paid for
classify       a classifier to try on true rows
reports        the pages
"""
