"""The rows of the catalog: what every Postgres has, and what the policy adds."""
