"""Find where Python makes the accelerator wait, say why, and prove it by running the code."""

__version__ = "0.1.0"
