"""RocketMQ's remoting protocol as bytes: no socket, no clock, no thread. Everything here is a function of its input."""
