"""Synthetic data: describe (paid, through the curator's door), generate and inspect (free, from the
description).

axis         a column on its public grid             description  the file between the verbs
source       where the engine finds the columns      generate     rows from a description
grids        lists and cuts found at a price         released     questions to released rows
workload     what questions need                     errors       what error to expect
marginals    counts asked through the allowance      inspect      figures, from the description
alone graphical    junction tree, propagation, estimation  compare      real against synthetic, paid
for smooth       noisy histograms made plausible         classify     a classifier to try on true
rows synthesizers SYNTHESIZERS, the family                raw          exact scores, NOT FOR RELEASE
describe     what is planned, paid and done          reports              the pages
"""
