"""The rows of the catalog: those of every Postgres, and those that the policy adds."""
