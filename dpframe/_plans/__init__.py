"""From what is asked and a price to noise: statistics, mechanisms, expected errors. Pure functions of public facts."""
