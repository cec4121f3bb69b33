"""Topics that a broker keeps for a group, by the prefix before the group's name: what is to be tried again, and dead
letters.
"""

from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
DEAD_LETTER_PREFIX: Final = "%DLQ%"
