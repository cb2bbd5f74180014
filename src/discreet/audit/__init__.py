"""For an auditor: what runs alone prove about a mechanism, and whether a ledger's charges are those
of its noise.
"""
