"""What a test or a notebook calls: budgets, the pytest plugin, the text report."""
