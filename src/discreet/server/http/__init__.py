"""The HTTP door: the same users, queue, limits, log and counts as the Postgres door, as JSON over
FastAPI.

application            the app: routes, and what stands around them
listener, guard        connections; what every request passes: limits, headers, deadline, counts
visitors, sessions     who asks: bearer tokens, and cookie sessions with a CSRF token
questions, kept        an analyst's routes; answers that are kept, so that a retry gets the same
                       bytes
curating, jobs         a curator's routes; long work with server-sent events
publishing             releases, publications and descriptions
shapes, faults         the JSON of requests and replies; the one shape of errors
pages                  what a browser shows
"""
