"""What a cell is: columns of any dtype as plain arrays, which cells are one key, and questions as
bytes that no other has."""
