"""One typed call for each request to a broker, by domain.

`calls.py` is what every call does; the others are one domain each. A new request goes to the file of its domain.
"""
