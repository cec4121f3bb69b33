"""One consumer group at its brokers: what is stored of it there, who is in it, and how its offsets are moved."""
