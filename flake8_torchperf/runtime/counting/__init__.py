"""Counts dispatches, host reads and synchronisations while code runs.

- `counter` opens and closes the parts; `recorder` keeps the counts; `evidence` is the result.
- Events are seen by `dispatch_modes`, by `interceptors` around functions that never reach the
  dispatcher, and by `cuda_syncs`, which receives CUDA's reports.
- `op_schemas` says what an operation is, `frames` which source line it belongs to.
- `graph_breaks` traces a function with ``torch.compile``; `fake_accelerator` lets the host stand
  in for a device that the machine lacks.
"""
