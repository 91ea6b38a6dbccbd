"""Copies between host and device.

`to_device` names those that wait, `queued` those with `non_blocking=True`; `report` lists those of
the latter that only look asynchronous.
"""
