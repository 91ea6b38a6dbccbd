"""`torchperf confirm`: runs a finding's function under the counter and gives a verdict.

Only the command line starts any of this.

- The parent never imports torch and never runs the code it judges. `plan` says what to run,
  `sandbox` starts, feeds and ends the child, `scaling` and `verdict` judge what it counted,
  `report` shows it.
- `specs` describes, chooses and builds inputs; part of it runs on each side.
- `child` is the process that runs the code.
"""
