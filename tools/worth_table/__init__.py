"""Measuring the evidence about judged places, fitting weights to it, and writing the table."""
