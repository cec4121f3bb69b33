"""The process in a pod: loads a handler, runs one member of a consumer group, and answers on a control port."""
