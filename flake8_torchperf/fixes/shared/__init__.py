"""What several unsafe fixes share: facts about expressions, and the text they write."""
