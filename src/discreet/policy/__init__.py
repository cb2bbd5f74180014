"""The policy: what the curator declares in a YAML file, as one checked value.

The file is read with the line and column of every word, so that messages can point at it.
"""
