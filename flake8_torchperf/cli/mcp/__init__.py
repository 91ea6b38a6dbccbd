"""``torchperf mcp``: the commands that only read, as tools of the Model Context Protocol."""
