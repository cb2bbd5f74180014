"""A generated town and a generated country, on which to try everything."""
