"""The data source `rocketmq`: batch and streaming reads as Arrow record batches, and writes."""
