"""Turn noisy tables into tables that add up: by least squares, then by whole numbers from the top
down.
"""
