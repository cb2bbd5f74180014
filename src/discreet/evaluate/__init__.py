"""Would the paper still be true? Findings of studies, asked of real and of synthetic tables.

findings    the file that people write              data        studies that are shipped, and their
tables assertion   what a finding claims, read             statistics  regression and Spearman,
which SQL lacks judge       whether it holds of a table             bootstrap   how steady it is on
the real rows public      descriptions of public tables           paid        what noisy answers say
of private rows parity      what holds, by synthesizer and ε        report      lines, JSON and the
page
"""
