"""From a manifest to a group that is as it says: observe → plan (pure) → apply → status.

Read `planning/` (what to do next) first, then `reconciling/` (the loop around it) and `reporting/` (what people are
told). `resources/` describes pods, `kube/` and `local/` are where they live, `rocketmq/` is the way to brokers, `lag/`
what happens between two reconciles, and `operator/` the process.
"""
