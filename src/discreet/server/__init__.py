"""Doors for untrusted analysts. Each door calls `curator` and nothing deeper.

users, scram, auth     who is asking: verifiers and tokens on disk, logins, lock-outs
settings               what a session may set: ε or a margin for its questions, and what clients
                       expect
queue                  workers, and one fair queue for all analysts
catalog                what clients of Postgres look up before they ask, from the policy alone
pgwire                 the Postgres protocol
serve                  opens the doors, counts, logs and closes them
"""
