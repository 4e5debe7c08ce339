"""The functions of expressions on cells: conditions and choices, times, texts."""
