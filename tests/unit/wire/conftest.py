"""How Hypothesis runs here: tests say nothing about time, so a busy machine must not fail them."""

from hypothesis import HealthCheck, settings

settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")
