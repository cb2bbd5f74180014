"""Post-processing of noisy numbers: estimates, margins and the rest of the statement. All of it is
free.
"""
