"""Who counts, and in which groups: units, keys, combinations of keys, periods. Public facts without
data."""
