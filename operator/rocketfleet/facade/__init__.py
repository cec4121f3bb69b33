"""The API of rocketmq-client-python over this project's own client: its users change one import.

Read `client.py`, the module to import from; then `producer.py`, `transaction.py` and `push_consumer.py`, which share
`connecting.py` and `settings.py`; `message.py`, `consts.py` and `exceptions.py` are what they take and give.
"""
