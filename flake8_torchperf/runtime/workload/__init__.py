"""`torchperf run`: runs the user's own workload and compares it with the linter's findings.

- In the parent, without torch: `launch` starts the child and waits. `matching` compares findings
  with observations, by statement; what CUDA itself reported (`device_reports`) takes precedence.
  `summary` is the result as data, `profiling` makes a profile.
- On both sides: `plan` is the data that crosses between them, `ownership` says whose lines count.
- In the child: `bootstrap` starts it and `session` runs the workload. `executed_lines` notes which
  lines ran, `sync_recorder` each call that waits. `sync_kinds` and, for copies,
  `copies` name the kind of wait; `host_provenance` says which tensors the host made.
"""
