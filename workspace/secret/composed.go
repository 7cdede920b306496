package secret

import "strings"

// piece is a part of a token: the text lead, and then least to most bytes of a set.
type piece struct {
	lead        string
	set         *charset
	least, most int
}

func exactly(lead string, ranges string, n int) piece { return piece{lead, chars(ranges), n, n} }

// composed returns the shapes of tokens that have several parts, or whose fixed part is
// not at their beginning.
func composed() []shape {
	const alnum, url, hex = alnumSet, urlSet, hexSet
	none := piece{}
	return []shape{
		tokenOf("a SendGrid key", none, "SG.", exactly("", url, 22), exactly(".", url, 43)),
		tokenOf("a Doppler token", none, "dp.st.", piece{"", chars("a-z0-9_-"), 2, 40}, piece{".", chars(alnum), 40, 44}),
		tokenOf("an Airtable token", none, "pat", exactly("", alnum, 14), exactly(".", hex, 64)),
		tokenOf("a Harness token", none, "pat.", exactly("", url, 22), exactly(".", alnum, 24), exactly(".", alnum, 20)),
		tokenOf("a Harness token", none, "sat.", exactly("", url, 22), exactly(".", alnum, 24), exactly(".", alnum, 20)),
		tokenOf("a Dynatrace token", none, "dt0c01.", exactly("", alnum, 24), exactly(".", alnum, 64)),
		tokenOf("a Mapbox token", none, "sk.eyJ", piece{"", chars(url), 40, 200}, exactly(".", url, 22)),
		tokenOf("a Cloudflare key", none, "v1.0-", exactly("", hex, 24), exactly("-", hex, 146)),
		tokenOf("a 1Password key", none, "A3-", exactly("", "A-Z0-9", 6), exactly("-", "A-Z0-9", 6),
			exactly("-", "A-Z0-9", 5), exactly("-", "A-Z0-9", 5), exactly("-", "A-Z0-9", 5), exactly("-", "A-Z0-9", 5)),
		tokenOf("a 1Password key", none, "A3-", exactly("", "A-Z0-9", 6), exactly("-", "A-Z0-9", 11),
			exactly("-", "A-Z0-9", 5), exactly("-", "A-Z0-9", 5), exactly("-", "A-Z0-9", 5)),
		tokenOf("a Terraform token", exactly("", alnum, 14), ".atlasv1.", piece{"", chars(url), 60, 70}),
		tokenOf("an Azure client secret", exactly("", alnum+"_.~-", 4), "Q~", piece{"", chars(alnum + "_.~-"), 31, 34}),
		tokenOf("a New Relic key", exactly("", hex, 36), "FFFFNRAL"),
		tokenOf("a Mailchimp key", exactly("", hex, 32), "-us", piece{"", chars("0-9"), 1, 2}),
		tokenOf("a MaxMind key", piece{"", chars(alnum + "_"), 36, 36}, "_mmk"),
	}
}

// tokenOf returns a shape with the bytes of before, then a literal, and then the other
// pieces. A longer run of the last piece's bytes does not match.
func tokenOf(what string, before piece, literal string, after ...piece) shape {
	return shape{what: what, literals: []string{literal}, find: func(text string, begin, end int) (int, int, bool) {
		from, to := begin-before.least, end
		if from < 0 || !startsWord(text, from) || before.least > 0 && before.set.run(text[:begin], from) < begin {
			return 0, 0, false
		}
		for _, p := range after {
			if !strings.HasPrefix(text[to:], p.lead) {
				return 0, 0, false
			}
			start := to + len(p.lead)
			to = p.set.run(text[:min(len(text), start+p.most+1)], start)
			if n := to - start; n < p.least || n > p.most {
				return 0, 0, false
			}
		}
		if to < len(text) && isAlnum(text[to]) {
			return 0, 0, false
		}
		return from, to, isRandom(text[from:begin] + text[end:to])
	}}
}
