"""One session of each client. A script is run by the client's own interpreter; it says what it saw
as JSON.

Each looks, asks, asks again, asks with a value beside the text, is refused, cancels, and asks for
what it cancelled.
"""
