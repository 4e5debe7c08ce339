"""What type checkers and editors know of verbs: nothing here runs when a question is asked."""
