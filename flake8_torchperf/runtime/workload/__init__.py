"""Runs a person's own workload under the counter and holds the linter's findings against it.

Where a line belongs:

- In the parent, without torch: `launch` starts the child and waits; `judge` compares what it saw
  with the findings, by statement (`statements`), and what CUDA reported itself
  (`device_reports`) goes first; `summary` is that as data.
- What both know: `plan` is what crosses between them, `owners` whose lines count.
- In the child: `bootstrap` starts it, `session` runs the workload; `lines` sees which lines ran,
  `witness` each call that waits, of which `kinds` and, to the device, `copies` name the way, and
  `origins` where its tensors were made.
"""
