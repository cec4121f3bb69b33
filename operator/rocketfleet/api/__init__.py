"""The custom resource as models: the one source of crds/, of what `rocketfleet run` reads, and of what the controller
writes to a status.

Read `names.py` and `model.py`, then `spec.py`, with `allocation.py` and `template.py` for two of its sections;
`status.py`; and `consumer_group.py`, the whole object. Rules that no schema can say are in `rules/`, made with
`rule.py`.

From a document to an object: `manifest.py`, `checking.py`, `wording.py` (what is wrong, for people),
`other_versions.py`. From the models to files: `schema.py`, `crd.py`, `reference.py` (docs/manifest.md).
"""
