package secret

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// maxBlock is how far findKeyBlock looks for the end of a key, in bytes. Keys
// of 16384 bits take 13 KB.
const maxBlock = 64 << 10

// findKeyBlock finds a private key between its BEGIN and END lines, even with
// escaped line ends or without the END line. Certificates and public keys do
// not match, and neither do the marker lines alone, which appear in programs
// that search for keys.
func findKeyBlock(text string, begin, end int) (from, to int, ok bool) {
	text = text[:min(len(text), end+maxBlock)]
	label, body, found := strings.Cut(text[end:], "-----")
	if !found || len(label) > 40 || !strings.Contains(label, "PRIVATE KEY") {
		return 0, 0, false
	}
	start := len(text) - len(body)
	inner, _, closed := strings.Cut(body, "-----")
	if !hasKeyLine(inner) {
		return 0, 0, false
	}
	to = start + len(inner)
	if !closed {
		body := chars("a-zA-Z0-9+/= \t\r\n\\\"',:;.-") // headers included
		return begin, body.run(text, start), true
	}
	if footer, found := strings.CutPrefix(text[to:], "-----END "); found {
		if name, _, found := strings.Cut(footer, "-----"); found && len(name) <= 40 {
			to += len("-----END ") + len(name) + len("-----")
		}
	}
	return begin, to, true
}

func hasKeyLine(body string) bool {
	set := chars("a-zA-Z0-9+/")
	for at := 0; at < len(body); at++ {
		to := set.run(body, at)
		if to-at >= 40 {
			return isRandom(body[at:to])
		}
		at = to
	}
	return false
}

// findPutty finds the private part of a PuTTY key: as many lines as its header
// states.
func findPutty(text string, begin, end int) (from, to int, ok bool) {
	count, _, found := strings.Cut(text[end:min(len(text), end+5)], "\n")
	lines, err := strconv.Atoi(strings.TrimSuffix(count, "\r"))
	if !found || err != nil {
		return 0, 0, false
	}
	from = end + len(count) + 1
	to = from
	for range lines {
		line, _, _ := strings.Cut(text[to:min(len(text), to+128)], "\n")
		to = min(len(text), to+len(line)+1)
	}
	if text[to-1] == '\n' {
		to--
	}
	return from, to, from < to && hasKeyLine(text[from:to])
}

func findTelegram(text string, begin, end int) (from, to int, ok bool) {
	for from = begin; from > max(0, begin-11) && isDigit(text[from-1]); {
		from--
	}
	if n := begin - from; n < 8 || n > 10 || !startsWord(text, from) && !strings.HasSuffix(text[:from], "bot") {
		return 0, 0, false
	}
	to = chars("a-zA-Z0-9_-").run(text[:min(len(text), end+40)], end)
	return from, to, to-end == 33 && isRandom(text[end:to])
}

// findDiscord finds the token of a bot: <the bot's number in base64>.<6>.<27 or more>.
func findDiscord(text string, begin, _ int) (from, to int, ok bool) {
	if !startsWord(text, begin) {
		return 0, 0, false
	}
	set := chars("a-zA-Z0-9_-")
	dot := set.run(text[:min(len(text), begin+32)], begin)
	number, err := base64.RawURLEncoding.DecodeString(text[begin:dot])
	if err != nil || len(number) < 17 || len(number) > 20 || strings.Trim(string(number), "0123456789") != "" {
		return 0, 0, false
	}
	second := set.run(text[:min(len(text), dot+8)], min(len(text), dot+1))
	if second-dot-1 != 6 || text[dot] != '.' || second == len(text) || text[second] != '.' {
		return 0, 0, false
	}
	to = set.run(text[:min(len(text), second+64)], second+1)
	return begin, to, to-second-1 >= 27 && isRandom(text[second+1:to])
}

// maxJWT is the maximum length of one part of a token, in bytes.
const maxJWT = 8 << 10

// findJWT finds header.payload.signature if the header names an algorithm and
// the payload is not a documentation example.
func findJWT(text string, begin, end int) (from, to int, ok bool) {
	if !startsWord(text, begin) {
		return 0, 0, false
	}
	set := chars("a-zA-Z0-9_-")
	at := begin
	var parts [3]string
	for i := range parts {
		to = set.run(text[:min(len(text), at+maxJWT)], at)
		parts[i] = text[at:to]
		if i < 2 && (to == len(text) || text[to] != '.') {
			return 0, 0, false
		}
		at = to + 1
	}
	header, err := base64.RawURLEncoding.DecodeString(parts[0])
	if err != nil || !strings.Contains(string(header), `"alg"`) {
		return 0, 0, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return 0, 0, false
	}
	lower := strings.ToLower(string(payload))
	for _, word := range []string{"john doe", "jane doe", "1234567890", "example", "supabase-demo"} {
		if strings.Contains(lower, word) {
			return 0, 0, false
		}
	}
	return begin, to, len(parts[2]) >= 32 && isRandom(parts[2])
}

// findURL finds the password of scheme://user:password@host. It ignores weak
// passwords that manuals and tests use, and hosts of manuals. URLs of this machine
// count: a tunnel may lead to production.
func findURL(text string, begin, end int) (from, to int, ok bool) {
	if begin == 0 || !isLetter(text[begin-1]) {
		return 0, 0, false
	}
	rest := text[end:min(len(text), end+512)]
	if stop := strings.IndexAny(rest, " \t\r\n\"'`<>/?#\\"); stop >= 0 {
		rest = rest[:stop]
	}
	at := strings.LastIndexByte(rest, '@')
	colon := strings.IndexByte(rest, ':')
	if at < 0 || colon < 0 || colon > at {
		return 0, 0, false
	}
	user, password, host := rest[:colon], rest[colon+1:at], rest[at+1:]
	if isExampleHost(host) || len(password) < 8 || strings.EqualFold(user, password) || isPlaceholder(password) {
		return 0, 0, false
	}
	lower := strings.ToLower(password)
	for _, weak := range []string{"password", "passwd", "secret", "postgres", "mysql", "mongo", "redis", "rabbit", "token", "test"} {
		if strings.Contains(lower, weak) {
			return 0, 0, false
		}
	}
	return end + colon + 1, end + at, strings.ContainsAny(password, "0123456789") && entropy(password) >= 2.5
}

func isExampleHost(host string) bool {
	host, _, _ = strings.Cut(strings.ToLower(host), ",")
	if host == "" {
		return true
	}
	name, _, _ := strings.Cut(host, ":")
	switch name {
	case "host", "hostname":
		return true
	}
	for _, end := range []string{"example.com", "example.org", "example.net", ".example", ".invalid", ".test"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

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
