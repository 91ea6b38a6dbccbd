"""Abstract interpretation: expressions to values, each tensor with the reason it is one.

Where a line belongs, from what everything shares to what sits on top:

- What is known of an expression: `values`, `reasons`, `ranks`, `shapes`, `record`, `environment`.
- What every evaluation shares: `machine`, `project` (other modules, with `folders`, `imports`,
  `texts`).
- What is stated: `annotations`, `docstrings`, `types`, `device_names`.
- What use tells: `evidence`, `uses`, `telling`, `passed`, `parameters`.
- Expressions: `expressions`, `attributes`, `subscripts`, `operators`, `comprehensions`,
  `iteration`.
- Statements: `statements`, `targets`, `loops`, `narrowing`, `verdicts`, `patterns`.
- Calls: `calls` decides who answers: `arguments`, `functions`, `closures`, `classes`, `lineage`,
  `effects`, `results`, `returned`; of torch `torch_calls`, `torch_special`, `tensor_calls`,
  `holders`, `loaded`; of others `builtin_calls`, `reductions`, `container_calls`, `containers`,
  `einops_calls`.
- What waits there: `emit` records sites; `contexts` says how seldom a branch runs, `repetition` how
  often a place does; `moves`,
  `fresh`, `handed` follow copies; `accumulation`, `training` judge training loops; `compiled`
  graph breaks.
- One suspect at a time: `reach` chooses them, `heats` says how often they run, `unit` interprets;
  `review` asks the calls of the whole package, which `incoming` finds.
"""
