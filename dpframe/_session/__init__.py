"""One frame, one budget, one door to the data; and the frames that are made from it."""
