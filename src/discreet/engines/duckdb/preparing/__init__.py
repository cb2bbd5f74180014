"""Make a numbered snapshot of a source: read it, encode its values as the policy says, order the
rows, store them, and verify the result.
"""
