"""Who holds which queue now: what Balanced starts from, and how a member comes to know it.

Balanced is only as good as the owners it is told. All members must be told the same, or they do not agree; it must be
what is so, not what was planned, or a plan that failed is carried on forever; and it must survive a restart of the
broker, which is when membership flaps. There were four ways.

Read from running info: chosen
    Each member is asked what it holds, through the broker, by GET_CONSUMER_RUNNING_INFO (307): the broker passes the
    question to the member's own connection, and the member answers with the table of queues it holds. So the answer is
    the holder's own, of this moment, from members in any language, and no broker stores anything. That answers come in
    one after another, some before a queue changed hands and some after, does no harm: Balanced gives the same answer
    in the middle of a change as before it (see there), so no snapshot, no leader and no round of agreement is needed.

Carried in the heartbeat: impossible
    Of a heartbeat the broker keeps, for each member, the connection, client id, language, version and time, and
    nothing else of them is shown to others (203). Subscriptions are kept for each group: an entry is replaced only by
    one with a higher subVersion, so members would overwrite each other, and a topic that one member does not name is
    struck out, which notifies the whole group, at every heartbeat. The client id is free text, but locks are taken in
    its name.

The lock table: cannot be read
    A refused lock does not name the holder, and no request lists locks. To ask is to lock.

QUERY_ASSIGNMENT: not for us
    There the broker itself allocates, by AVG or AVG_BY_CIRCLE only, topic by topic, from the same list of members, and
    remembers nothing.

The rules for whoever asks
    1. Ask when members or queues have changed since the last settled allocation, and again for as long as one does not
       hold exactly what one was given; not at every tick. A round costs members² questions in all, which is nothing
       for dozens of members and too much for a thousand.
    2. Ask each member once a round, and give it a second. To wait longer is no use, and to ask again does damage: the
       broker waits up to ten seconds for a member that is silent, on one of the 16 threads that also serve locks. Eight
       members asking after a frozen one did not slow a lock down; while twenty did, locks were refused as busy (code 2)
       or waited, for 8 s (5.5.0, one run). A lock lives 60 s, so this delays handovers and costs nobody a queue; but a
       refused lock must be tried again, and a group of far more members should ask through a few of them instead.
    3. A member that does not answer holds nothing; not what it was last heard to hold, for a newcomer has never heard
       it, and then the two would not agree. As long as nothing else changes, its queues are the only loose ones and the
       room for them is its own: all but one at most come back to it.
    4. What one sees alone does not count. 307 needs the right Get on the group, which a consumer with Sub alone does
       not have. Refused that, a member must not even count the queues it holds itself, but pass no owners at all: the
       allocation is then the same for all, and even, and merely moves more than it must.
"""

from collections.abc import Collection, Mapping

from rocketfleet.allocation.java_order import sort_members
from rocketfleet.wire.queue import MessageQueue


def known_owners(reports: Mapping[str, Collection[MessageQueue]]) -> dict[MessageQueue, str]:
    """One owner a queue, from what each member says it holds (oneself included); silent members are left out.

    A queue that two members report is changing hands, or is pulled by both under eager handover. It counts for the one
    whose id sorts first: either would do, if only all choose the same.
    """
    owners: dict[MessageQueue, str] = {}
    for member in sort_members(reports):
        for queue in reports[member]:
            owners.setdefault(queue, member)
    return owners
