"""The Postgres protocol, version 3: what psql, drivers and BI tools speak. Written by hand, message
by message.

messages       bytes to frontend messages, backend messages to bytes
types          Arrow values in Postgres's types, as text and as binary
lexer          SQL to tokens: to split messages of several statements and to find parameters
parameters     the types of $1, $2, ... and their values, written into the question
faults         errors with SQLSTATE, hint and place
copying        COPY (question) TO STDOUT
question       from a statement to the curator: its price from the settings, margins as columns,
               notices
commands       everything that is no question: SET, SHOW, BEGIN, DECLARE, ...
login          startup, TLS, SCRAM
session        one connection: the messages of a logged-in user
"""
