"""Group keys: which are public, and which combinations of them are possible."""
