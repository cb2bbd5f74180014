"""The vault: the only place where exact values meet noise.

    Exact        values that an engine read; they do not print or pickle, and only an Allowance
                 opens them
    Allowance    adds the noise that a charge has paid for, and releases no more than that
    Steps        a measurement that is paid once and released step by step
    Answer       a noisy table with margins, as its reader gets it

The order is always: charge, read, add noise, store, release. An Allowance exists only after its
charge is on disk, and derives all its noise from the charge's own key (S8).
"""
