"""Synthetic data: describe (paid, through the curator's door), generate and inspect (free, from the description).

axis         a column on its public grid             description  the file between the verbs
marginals    counts asked through the allowance      generate     rows from a description
graphical    junction tree, propagation, estimation  inspect      what to expect of it
smooth       noisy histograms made plausible         synthesizers SYNTHESIZERS, the family
"""
