"""The inputs of attacks: tables, logs of questions, published statistics, ratings."""
