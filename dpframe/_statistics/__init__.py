"""The integers that noise is added to, each with its sensitivity."""
