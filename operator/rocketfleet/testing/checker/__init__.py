"""Compares a history with what is promised. Pure: events in, a verdict out.

A queue system that may deliver a message again cannot be judged by counting: a repetition is right after a kill and
wrong without one. So each finding is judged by itself. Where something happened that is promised not to happen, the
checker looks for the fault in the record that the promise excepts, at the place and in the time that it excepts it for;
what no fault explains is a finding, with the part of the history that shows it.

In the order to read:

- `promises.py`: what is promised for how long, with the lines of docs/guarantees.md it is taken from
- `run_record.py`: the history, taken apart: handlings, faults from when to when, who lived when, what was committed
- `excuses.py`: which fault explains that a message came again
- a file for each family of findings: `losses.py`, `repetitions.py`, `order.py`, `doubles.py`, `offsets.py`,
  `unowned.py`, `backlog.py`; each is a function from record and promises to findings
- `finding.py`: what each of them says; `history_verdict.py`: what they amount to; `check.py`: all of it
"""
