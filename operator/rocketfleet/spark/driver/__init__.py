"""The driver of a ConsumerGroup with engine Spark: a pipeline as the one member of its group."""
