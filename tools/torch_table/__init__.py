"""Parts of the generator of `flake8_torchperf/knowledge/torch_table.json`; see
`generate_torch_table.py`.
"""
