"""Sending: queue choice, latency fault tolerance, batches, order, delay, transactions."""
