"""Plans: keys, blocks of statistics and picks, how far one person moves each, and what each is
known by.
"""
