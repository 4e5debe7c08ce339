"""What a cell is: columns of any dtype as plain arrays, and which cells are one key."""
