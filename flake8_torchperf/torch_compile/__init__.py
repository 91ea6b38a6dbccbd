"""What ``torch.compile`` compiles and ``torch.func`` transforms, by syntax."""
