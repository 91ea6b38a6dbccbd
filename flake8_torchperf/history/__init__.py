"""Files that hold findings and measurements: baselines and profiles."""
