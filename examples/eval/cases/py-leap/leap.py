"""Leap years of the Gregorian calendar."""


def is_leap(year):
    """Return whether a year has 366 days."""
    return year % 4 == 0
