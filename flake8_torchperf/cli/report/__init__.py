"""What ``torchperf check`` prints besides flake8's own formats: findings in, a report out."""
