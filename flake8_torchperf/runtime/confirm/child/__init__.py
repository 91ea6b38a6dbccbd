"""The sandboxed child process of ``torchperf confirm``.

``python -m`` runs `__main__`, which forks once for each job. `isolation` and `namespaces` limit
what a job may use and reach. `measure` does a job: `load` makes the file's functions callable,
`target` prepares the calls, `search` chooses inputs, `traced_call` makes one call.
"""
