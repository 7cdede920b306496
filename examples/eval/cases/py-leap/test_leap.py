import unittest

from leap import is_leap


class Leap(unittest.TestCase):
    def test_years(self):
        years = [1896, 1900, 1904, 2000, 2023, 2100]
        self.assertEqual([y for y in years if is_leap(y)], [1896, 1904, 2000])
