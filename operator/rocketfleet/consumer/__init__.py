"""Consuming: rebalance, ownership and handover, pull, concurrent and orderly consumption, offsets, shutdown."""
