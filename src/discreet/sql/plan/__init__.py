"""Plans: blocks of statistics and picks over keys, their sensitivities, and the ids under which they
are stored.
"""
