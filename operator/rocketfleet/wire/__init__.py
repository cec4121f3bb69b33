"""RocketMQ's remoting protocol as bytes: no socket, no thread. Everything here is a function of its input; what needs
the time takes a clock.

From the outside in: `frame` cuts the stream, `command` reads and writes headers (`codes` has their numbers, `acl` signs
them), `bodies` holds the typed JSON bodies (`fastjson` reads their dialect, `offset_tables` the largest of them),
`message` is everything about messages (`received` is its hot half). `queue`, `topics` and `enums` are words that all
others use. Whatever a peer sends, only a `WireError` (`errors`) comes out.

What a broker or another client writes can be written here too, and what we write can be read (`encode_stored`,
`decode_batch`, ids): so each form is tested against itself and against Java in both directions, and a benchmark can
make the bytes that it decodes.
"""
