"""How attacks are tried and judged: controls, chance baselines, what an attacker knows."""
