"""What users see: the command line, explanations and reports."""
