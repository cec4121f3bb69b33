"""For all tests. Hypothesis fails examples that are slow, by default; these tests are not about time.

A shell starts what it runs in the background with SIGINT ignored, and children inherit that: programs under test would
then take no Ctrl-C, which some tests are about.
"""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
