"""The parts of `rocketfleet send`: lines, pace, delivery, progress."""
