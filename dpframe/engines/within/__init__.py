"""What the rows of one person make of each other, on numpy: every `Within` of one frame.

*Formal guarantee.* The value in a row is a function of the rows of its person, in the order that
they have among each other, to the last bit; no cell makes this raise. Rows are grouped by person,
and doubles are added in the order of the person's own rows. pandas' own group-by gives no such
guarantee: it adds in another order where the labels of all rows happen to be sorted, so that a
neighbour's row can change somebody's last digit.
"""
