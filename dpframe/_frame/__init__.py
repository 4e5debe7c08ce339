"""The surface: tracked frames, columns and groups. Verbs build questions here; nothing reads a
cell."""
