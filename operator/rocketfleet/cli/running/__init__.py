"""The parts of `rocketfleet run`: its screen, and what it wrote down."""
