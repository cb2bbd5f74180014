"""Audits: lower bounds on ε from runs of mechanisms and questions, and a check of a ledger's
charges against its noise.
"""
