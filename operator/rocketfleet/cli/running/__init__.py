"""The parts of `rocketfleet run`: its screen (`run_screen.py`), and what it wrote down (`run_state.py`)."""
