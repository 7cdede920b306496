"""Roman numerals."""

VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def parse(numeral):
    """Return the value of a Roman numeral."""
    return sum(VALUES[letter] for letter in numeral)
