"""The API of rocketmq-client-python over this project's own client: its users change one import."""
