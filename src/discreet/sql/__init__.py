"""Plan a question from its text and a policy. Pure: no engine, no data, no randomness."""
