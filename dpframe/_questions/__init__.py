"""Questions: everything that can be asked of a session."""
