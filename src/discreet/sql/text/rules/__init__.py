"""Rules that rewrite what people and tools write into the words that the analysis knows."""
