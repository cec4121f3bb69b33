"""Who owns which queue: one strategy a file, each a pure function of (group, me, members, queues)."""
