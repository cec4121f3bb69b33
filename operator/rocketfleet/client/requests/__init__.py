"""One typed call for each request to a broker, by domain.

`calls.py` is what every call does; the others are one domain each. A new request goes to the file of its domain. The
room covers the requests by which messages, groups and their members are looked at and moved, each tested against Java's
client; a few of them nobody in the package makes yet.
"""
