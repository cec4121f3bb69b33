"""What a worker under test has for a handler: the user's, recorded. Only such a worker can import it."""

import os
from pathlib import Path

from rocketfleet.testing.group.handler_place import HANDLER_VARIABLE, MEMBER_VARIABLE, PATH_VARIABLE, RECORD_VARIABLE
from rocketfleet.testing.history import Recorder
from rocketfleet.testing.recording import recorded
from rocketfleet.worker.handler_loading import load_handler

_path = os.environ.get(PATH_VARIABLE)
_loaded = load_handler(os.environ[HANDLER_VARIABLE], None if _path is None else Path(_path))
_recorder = Recorder(os.environ[RECORD_VARIABLE], os.environ[MEMBER_VARIABLE])

handle = recorded(_loaded.call, _recorder, batch=_loaded.takes_batch)
