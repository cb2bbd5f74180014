"""Drafts of policies: made from schemas, names, codebooks and the curator's answers, never from
values.
"""
