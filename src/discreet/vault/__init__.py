"""The vault, the only place where exact values meet noise.

    Exact        what an engine read; it does not print, does not pickle, and only an Allowance
                 opens it
    Allowance    what a reservation paid for; it adds the noise, and releases no more than that
    Steps        a measurement that was paid for once and is released step by step
    Answer       what leaves

The order is always: charge, read, add noise, store, release (DESIGN 1). An Allowance exists only
after the charge is on disk, and every draw it makes is a function of the charge's own key (S8).
"""
