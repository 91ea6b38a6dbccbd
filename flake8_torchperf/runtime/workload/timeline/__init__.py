"""`torchperf run --trace`: `breaks` notes graph breaks in the child, `chrome` writes the file."""
