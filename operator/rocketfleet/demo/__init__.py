"""`rocketfleet demo`: a real broker, real workers, live traffic, a group that grows and shrinks, and a verdict."""
