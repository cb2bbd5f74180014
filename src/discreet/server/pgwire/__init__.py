"""The door for the Postgres protocol, version 3, which psql, drivers and BI tools speak.

messages       reads the messages of clients, and writes those of the server
types          writes Arrow values in Postgres's types, as text and as binary
lexer          cuts SQL into tokens, to split several statements and to find parameters
parameters     finds the types of $1, $2, ..., and writes their values into the question
faults         errors with SQLSTATE, hint and place
copying        COPY (question) TO STDOUT
question       asks the curator: takes the price from the settings, adds margins and notices
commands       runs statements that are no questions: SET, SHOW, BEGIN, DECLARE, ...
login          startup, TLS, SCRAM
session        one connection: handles the messages of a logged-in user
"""
