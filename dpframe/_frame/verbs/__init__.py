"""The verbs of tracked frames, columns and groups. Each makes a new selection, or a question about
one."""
