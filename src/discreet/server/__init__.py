"""The server: doors through which untrusted analysts ask. Each door calls `curator` and nothing
deeper.

users, scram, auth     who is asking: password verifiers and tokens on disk, logins, lock-outs
settings               the settings of a session: ε or a margin for its questions, and settings that
                       Postgres clients expect
queue                  workers, and one fair queue for all analysts
catalog                what Postgres clients look up before they ask, from the policy alone
pgwire                 the door for the Postgres protocol
http                   the door for HTTP: an API, and pages for a browser
serve                  opens and closes the doors
limits, log, metrics   what clients may take; JSON logs; counts
"""
