"""Who owns which queue: one strategy per file, each a pure function of a member's view (`request.Request`).

`strategies.build(name, parameters)` finds a strategy, `strategies.allocate_group(strategy, request)` asks it for a
member's queues of all topics. Six are Java's, equal to them queue by queue and error by error; `balanced` is ours.
Read `request.py`, `strategies.py`, `owners.py` (how the present owners are known), then any strategy; Java's share
`java_order.py`.
"""
