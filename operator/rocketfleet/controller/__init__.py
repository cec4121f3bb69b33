"""From a manifest to a group that is as it says: observe → plan (pure) → apply → status."""
