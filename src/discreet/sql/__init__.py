"""From a question's text and a policy to a plan. Pure: no engine, no data, no randomness."""
