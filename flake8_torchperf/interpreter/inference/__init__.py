"""Types inferred from how names are used."""
