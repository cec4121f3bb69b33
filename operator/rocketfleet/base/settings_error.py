"""What is wrong with what a process was told, as one sentence that its user can act on."""


class SettingsError(ValueError):
    """Something about the settings is wrong; the message says what and how to put it right."""
