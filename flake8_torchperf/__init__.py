"""Find the places where Python makes the accelerator wait, say why, and prove it by running them."""

__version__ = "0.1.0"
