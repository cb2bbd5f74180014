"""A policy to begin with: from schemas, names, codebooks and answers, never from values."""
