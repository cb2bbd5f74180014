"""Keys of groups: which are public, and which combinations of them can be."""
