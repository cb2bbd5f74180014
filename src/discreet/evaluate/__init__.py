"""Test whether the findings of a study, which hold on real tables, also hold on synthetic ones.

findings     reads the file of a study's findings
assertion    reads the SQL by which a finding is tested
judge        tests whether a finding holds on a table
public       describes public tables
parity       counts which findings hold, by synthesizer and ε
data         the studies that are shipped, and their tables
statistics   regression and Spearman's correlation, which SQL lacks
bootstrap    measures how steady a finding is on the real rows
paid         tests findings on private rows, by noisy answers
report       writes lines, JSON and a page
"""
