"""For tests of handlers, and of Rocketfleet itself: what happened is written down, and compared with the promises."""
