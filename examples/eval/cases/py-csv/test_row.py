import unittest

import row


class Split(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(row.split("a,b,,c"), ["a", "b", "", "c"])

    def test_quoted(self):
        self.assertEqual(row.split('a,"b,c",d'), ["a", "b,c", "d"])
