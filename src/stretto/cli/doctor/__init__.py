"""The verb `doctor`: what this machine allows, and what follows from it."""
