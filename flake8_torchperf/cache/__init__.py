"""What was found before, kept between runs: findings by everything they depend on."""
