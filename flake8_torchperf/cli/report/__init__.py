"""The reports of ``torchperf check`` besides flake8's own formats: findings in, a report out."""
