"""``torchperf server``: findings while they are typed, over the language server protocol."""
