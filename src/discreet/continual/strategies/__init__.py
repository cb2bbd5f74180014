"""The strategies: each says which integer combinations of a stream get noise."""
