"""The catalogue of rules matched against sites."""
