"""From a source to a numbered snapshot: read, hold to the policy, order, store, check."""
