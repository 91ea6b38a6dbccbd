"""`torchperf run`: runs a person's own workload and compares it with the linter's findings.

- In the parent, without torch: `launch` starts the child and waits. `matching` compares, by
  statement (`statements`), what was seen with what was found; what CUDA itself reported
  (`device_reports`) takes precedence. `summary` is the result as data.
- On both sides: `plan` is what crosses between them, `ownership` says whose lines count.
- In the child: `bootstrap` starts it and `session` runs the workload. `executed_lines` notes which
  lines ran, `sync_recorder` each call that waits. `sync_kinds` and, for copies to the device,
  `copies` name the way in which it waits; `host_provenance` says which tensors the host made.
"""
