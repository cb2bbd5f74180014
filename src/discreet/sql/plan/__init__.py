"""Plans: blocks of statistics and picks over keys, how far one person moves each, and the ids that
they are stored under.
"""
