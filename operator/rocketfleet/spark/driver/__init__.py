"""The driver of a ConsumerGroup with engine Spark: a pipeline as the one member of its group.

Read `process.py`, `driver.py` and `group_member.py`. The query: `session.py` and `spark_home.py` (how Spark is set up),
`settings.py` and `options.py` (what it is told), `query.py`, `progress.py`. What is seen from outside: `control.py`,
`metrics.py`.
"""
