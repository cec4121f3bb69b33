"""A fleet that must not outlive the program that started it: tests and demonstrations.

A program that is killed cannot clean up, and a broker nobody knows of burns a tenth of a core for ever. So a shell
waits beside it for the end of a pipe, which the kernel closes when the program is gone, however that came about; then
it stops the fleet and deletes its data.
"""

import subprocess
import sys
from pathlib import Path

_WAIT_THEN_STOP = 'cat >/dev/null; exec "$@"'
_STOP = "import sys; from rocketfleet.devbroker.fleet import Fleet; Fleet(sys.argv[1]).stop(delete_data=True)"


class Guard:
    """Stops the fleet of a directory once this process is gone."""

    def __init__(self, directory: Path) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _WAIT_THEN_STOP, "sh", sys.executable, "-c", _STOP, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # not to be ended by the Ctrl-C that ends the program
        )

    def dismiss(self) -> None:
        """The fleet was stopped in good order."""
        self._shell.kill()
        self._shell.wait()
        if self._shell.stdin is not None:
            self._shell.stdin.close()
