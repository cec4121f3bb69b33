"""A real RocketMQ on loopback for development and tests, out of published jars; needs nothing but Java.

Read `fleet.py`; then, in the order of a start: `distribution/` (the jars), `setup/` (what is to be run), `launch.py`
and `probe.py` (up, and known to be), `state.py` (what the directory remembers). When something fails: `errors.py`,
`lastwords.py`. For people and programs: `describe.py`, `reporting.py`, `mqadmin.py`. For tests: `guard.py`,
`topics.py`.
"""
