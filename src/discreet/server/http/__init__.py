"""The HTTP door: a JSON API in FastAPI, with the same users, queue, limits, log and counts as the
Postgres door.

application            the app, with its routes and error handlers
listener, guard        connections; the checks of every request: limits, headers, deadline, counts
visitors, sessions     who asks: bearer tokens, and cookie sessions with a CSRF token
questions, kept        an analyst's routes; stored answers, so that a retry gets the same bytes
curating, jobs         a curator's routes; long work, which reports by server-sent events
publishing             releases, publications and descriptions
shapes, faults         the JSON of requests and replies, and of errors
pages                  the pages of a browser
"""
