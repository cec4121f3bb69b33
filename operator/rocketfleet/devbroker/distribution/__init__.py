"""RocketMQ's jars.

Which (`jars.lock`, `lock.py`), fetched (`download.py`), kept (`jars.py`), and run by which Java (`java.py`).
"""
