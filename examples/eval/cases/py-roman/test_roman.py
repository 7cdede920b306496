import unittest

import roman


class Parse(unittest.TestCase):
    def test_sums(self):
        self.assertEqual(roman.parse("VIII"), 8)

    def test_differences(self):
        self.assertEqual(roman.parse("IV"), 4)
        self.assertEqual(roman.parse("MCMXCIV"), 1994)
