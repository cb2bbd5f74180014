"""Answer what Postgres clients look up before they ask: pg_catalog, information_schema, and
functions of the session.

tables/               the rows: builtin and fixed have those of every Postgres, contents and views
                      those that the policy adds
parse, kinds          read a statement, and find the types of its columns
functions, literals   the functions and constants that a statement may use
translate             writes the statement for our own DuckDB
catalog, session      run it, for one session
"""

from discreet.server.catalog.catalog import Catalog, StatementDescription
from discreet.server.catalog.failure import CatalogError
from discreet.server.catalog.session import CatalogSession

__all__ = ["Catalog", "CatalogError", "CatalogSession", "StatementDescription"]
