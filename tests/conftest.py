"""For all tests. Hypothesis fails examples that are slow, by default; these tests are not about time."""

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")
