"""A real RocketMQ on loopback for development and tests, out of published jars; needs nothing but Java."""
