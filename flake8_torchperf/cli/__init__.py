"""The command line, explanations and reports: the parts that users see."""
