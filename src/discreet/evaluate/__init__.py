"""Would the paper still be true? Findings of studies, asked of real and of synthetic tables.

findings     the file that people write
assertion    what a finding claims, read
judge        whether it holds of a table
public       descriptions of public tables
parity       what holds, by synthesizer and ε
data         studies that are shipped, and their tables
statistics   regression and Spearman, which SQL lacks
bootstrap    how steady it is on the real rows
paid         what noisy answers say of private rows
report       lines, JSON and the page
"""
