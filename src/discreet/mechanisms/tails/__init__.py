"""How far noise goes: its tail probabilities, and draws of it anew."""
