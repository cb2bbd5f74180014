"""Answer what clients of Postgres look up before they ask: pg_catalog, information_schema,
functions of the session.

builtin               what every Postgres has
parse, kinds          a statement and its types
functions, literals   the vocabulary
contents, views       what the policy adds
translate             the statement, written anew
catalog, session      who asks, and the answer
"""

from discreet.server.catalog.catalog import Catalog, StatementDescription
from discreet.server.catalog.failure import CatalogError
from discreet.server.catalog.session import CatalogSession

__all__ = ["Catalog", "CatalogError", "CatalogSession", "StatementDescription"]
