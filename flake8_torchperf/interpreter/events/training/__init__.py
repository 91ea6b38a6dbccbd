"""Events of a training or evaluation loop: its losses, loaders and optimizers."""
