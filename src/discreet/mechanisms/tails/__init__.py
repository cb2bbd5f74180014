"""How far noise reaches: bounds of its tail probabilities, and simulations of it."""
