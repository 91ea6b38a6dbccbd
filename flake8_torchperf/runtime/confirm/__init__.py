"""`torchperf confirm`: a finding goes in, a run under the dispatch counter gives a verdict.

Nothing here starts but from the command line. Where a line belongs:

- In the parent, which never imports torch and never runs the code it judges: `plan` says what to
  run, `inputs` and `usage` what a parameter may be given; `sandbox` starts, feeds and ends the
  child; `law` and `verdict` judge what it counted; `report` and `page` show it.
- What crosses to the child: `recipes`, with `names` for what a name alone suggests. No torch here.
- In the child: `child` is the process, `isolation` and `namespaces` what it may use and reach;
  `load` makes a file's functions callable.
- In the child, with torch: `candidates`, `build` and `objects` make inputs, `subject` calls with
  them; `run` is one call, `search` chooses among them, `measure` the whole of one job.
"""
