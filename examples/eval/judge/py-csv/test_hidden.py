import unittest

import row


class Hidden(unittest.TestCase):
    def test_doubled_quotes(self):
        self.assertEqual(row.split('"say ""hi""",b'), ['say "hi"', "b"])
        self.assertEqual(row.split('"",x'), ["", "x"])
