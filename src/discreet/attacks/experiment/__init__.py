"""Try attacks and judge them: controls, chance baselines, and a model of what attackers know."""
