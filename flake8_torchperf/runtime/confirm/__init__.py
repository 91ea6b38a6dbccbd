"""`torchperf confirm`: a finding goes in, a run under the dispatch counter gives a verdict.

The parent's modules (plan, inputs, usage, sandbox, law, verdict, report) never import torch and
never run the code they judge; the child's (child, load, build, candidates, search, measure) do.
Nothing here starts but from the command line.
"""
