"""Which class makes which kind of fault. What is not in this table cannot be drawn."""

from collections.abc import Mapping
from typing import Final

from tests.faults import faults_brokers, faults_clocks, faults_manifest, faults_members, faults_network, faults_topology
from tests.faults.fault import Fault
from tests.faults.schedule import FaultKind

FAULTS: Final[Mapping[FaultKind, type[Fault]]] = {
    FaultKind.MEMBER_JOINS: faults_members.MemberJoins,
    FaultKind.MEMBER_LEAVES: faults_members.MemberLeaves,
    FaultKind.MEMBER_KILLED: faults_members.MemberKilled,
    FaultKind.MEMBER_RESTARTED: faults_members.MemberKilled,
    FaultKind.MEMBER_FROZEN: faults_members.MemberFrozen,
    FaultKind.HANDLER_SLOW: faults_members.HandlerSlow,
    FaultKind.HANDLER_FAILING: faults_members.HandlerFailing,
    FaultKind.HANDLER_HANGING: faults_members.HandlerHanging,
    FaultKind.BROKER_PAUSED: faults_brokers.BrokerPaused,
    FaultKind.BROKER_KILLED: faults_brokers.BrokerKilled,
    FaultKind.BROKER_RESTARTED: faults_brokers.BrokerRestarted,
    FaultKind.BROKER_REFUSES_WRITES: faults_brokers.BrokerRefusesWrites,
    FaultKind.NAME_SERVER_KILLED: faults_brokers.NameServerKilled,
    FaultKind.TOPIC_GROWS: faults_topology.TopicGrows,
    FaultKind.BROKER_ADDED: faults_topology.BrokerAdded,
    FaultKind.QUEUES_READ_ONLY: faults_topology.QueuesReadOnly,
    FaultKind.GROUP_RESET: faults_topology.GroupReset,
    FaultKind.CUT_OFF: faults_network.CutOff,
    FaultKind.CUT_TO_BROKER: faults_network.CutToBroker,
    FaultKind.CUT_FROM_BROKER: faults_network.CutFromBroker,
    FaultKind.LOSSY: faults_network.Lossy,
    FaultKind.THROTTLED: faults_network.Throttled,
    FaultKind.CLOCK_JUMPS: faults_clocks.ClockJumps,
    FaultKind.REPLICAS_EDITED: faults_manifest.ReplicasEdited,
    FaultKind.STRATEGY_EDITED: faults_manifest.StrategyEdited,
    FaultKind.CODE_EDITED: faults_manifest.CodeEdited,
    FaultKind.SUBSCRIPTION_EDITED: faults_manifest.SubscriptionEdited,
    FaultKind.GROUP_SUSPENDED: faults_manifest.GroupSuspended,
    FaultKind.GROUP_DELETED: faults_manifest.GroupDeleted,
    FaultKind.AUTOSCALED: faults_manifest.Autoscaled,
    FaultKind.RUN_KILLED: faults_manifest.RunKilled,
    FaultKind.POD_KILLED: faults_manifest.PodKilled,
    FaultKind.POD_FROZEN: faults_manifest.PodFrozen,
}
