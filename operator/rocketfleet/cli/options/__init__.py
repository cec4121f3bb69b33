"""Options that several commands share, or that are too many for their command's file.

`option_group.py` hands options that belong together to a command as one object, as `operator_process.py` uses it;
`member_process.py`, `spark_master.py`, `cluster_name.py` say in their names whose they are.
"""
