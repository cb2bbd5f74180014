"""The curator's declarations: a YAML document, read with the place of every word, as one checked
value.
"""
