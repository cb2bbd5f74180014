"""Run attacks and judge them: controls, baselines of guessing, and a model of what attackers
know.
"""
