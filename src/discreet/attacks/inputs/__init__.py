"""What attacks read: tables, logs of questions, published statistics, ratings."""
