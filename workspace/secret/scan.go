package secret

import (
	"math"
	"slices"
	"strings"
	"unicode"

	"hone/internal/lazyregexp"
)

// shape is one form of secret. The scanner tries it wherever one of its
// literals occurs in a text.
type shape struct {
	what     string   // for messages: "a GitHub token"
	literals []string // of at least two bytes
	// find gets the text and the position of a literal in it. It returns the
	// bounds of the secret, or ok false.
	//
	// Contract: it reads no more of the text than it needs and keeps no
	// reference to it.
	find func(text string, begin, end int) (from, to int, ok bool)
}

type span struct {
	start, end int
	what       string
}

// scanner looks for all shapes in one pass. The first two bytes of every
// literal index a table, so that most of a text costs one look-up per byte.
type scanner struct {
	first2 [1 << 16]uint16 // 0, or 1 plus an index into groups
	groups []group
}

// group is the literals that begin with the same two bytes. Some of these pairs are in
// every other word, which the two bytes after them tell apart.
type group struct {
	third, fourth byteSet
	tries         []try
}

type byteSet [4]uint64

func (s *byteSet) has(c byte) bool { return s[c>>6]&(1<<(c&63)) != 0 }

func (s *byteSet) add(literal string, at int) {
	if at >= len(literal) {
		*s = byteSet{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
		return
	}
	c := literal[at]
	s[c>>6] |= 1 << (c & 63)
}

type try struct {
	literal string
	shape   *shape
}

func newScanner(list []shape) *scanner {
	s := &scanner{groups: make([]group, 0, len(list))}
	for i := range list {
		for _, literal := range list[i].literals {
			s.add(try{literal: literal, shape: &list[i]})
		}
	}
	return s
}

func (s *scanner) add(t try) {
	pair := uint16(t.literal[0])<<8 | uint16(t.literal[1])
	if s.first2[pair] == 0 {
		s.groups = append(s.groups, group{})
		s.first2[pair] = uint16(len(s.groups))
	}
	g := &s.groups[s.first2[pair]-1]
	g.tries = append(g.tries, t)
	g.third.add(t.literal, 2)
	g.fourth.add(t.literal, 3)
}

func (s *scanner) all(text string) []span {
	var found []span
	for at := 0; ; {
		f, ok := s.next(text, at)
		if !ok {
			return found
		}
		found = append(found, f)
		at = f.end
	}
}

func (s *scanner) next(text string, at int) (span, bool) {
	if at >= len(text) {
		return span{}, false
	}
	pair := uint16(text[at])
	for i := at + 1; i < len(text); i++ {
		pair = pair<<8 | uint16(text[i])
		n := s.first2[pair]
		if n == 0 {
			continue
		}
		g := &s.groups[n-1]
		if i+2 < len(text) && !(g.third.has(text[i+1]) && g.fourth.has(text[i+2])) {
			continue
		}
		if found, ok := s.tryAll(g.tries, text, i-1); ok && found.end > at {
			return found, true
		}
	}
	return span{}, false
}

func (s *scanner) tryAll(tries []try, text string, at int) (span, bool) {
	for _, t := range tries {
		if !strings.HasPrefix(text[at:], t.literal) {
			continue
		}
		if from, to, ok := t.shape.find(text, at, at+len(t.literal)); ok {
			return span{start: from, end: to, what: t.shape.what}, true
		}
	}
	return span{}, false
}

type charset [128]bool

// chars returns the set for ranges such as "a-zA-Z0-9_". A "-" at the end is a
// literal.
func chars(ranges string) *charset {
	var set charset
	for i := 0; i < len(ranges); i++ {
		low, high := ranges[i], ranges[i]
		if i+2 < len(ranges) && ranges[i+1] == '-' {
			high = ranges[i+2]
			i += 2
		}
		for c := low; c <= high; c++ {
			set[c] = true
		}
	}
	return &set
}

func (set *charset) has(c byte) bool { return c < 128 && set[c] }

func (set *charset) run(text string, at int) int {
	for at < len(text) && set.has(text[at]) {
		at++
	}
	return at
}

// startsWord reports whether a token can start at a position: not after a
// letter or digit, unless these belong to an escape such as \n or %22. Hyphens
// and underscores join a token to other words in names of files.
func startsWord(text string, at int) bool {
	if at == 0 || !isAlnum(text[at-1]) {
		return true
	}
	if at >= 2 && text[at-2] == '\\' && strings.IndexByte("nrt", text[at-1]) >= 0 {
		return true
	}
	return at >= 3 && text[at-3] == '%' && isHex(text[at-2]) && isHex(text[at-1])
}

func isHex(c byte) bool { return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f' }

func entropy(s string) float64 {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	bits := 0.0
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// isRandom reports whether a token's body looks generated. It must have three
// bits per byte, which 16 random hex digits usually have and words seldom have,
// and must not be a placeholder.
func isRandom(body string) bool { return entropy(body) >= 3 && !isPlaceholder(body) }

// template is a value in whose place another one comes: <your key>, {{ token }}, $PASSWORD,
// ${password}, %(key)s or %KEY%.
var template = lazyregexp.New(`^<.*>$|^\$\{|^\{\{|^\{.*\}$|^\$(?:[A-Z_][A-Z0-9_]*|[a-z_]+|\(.*\))$|^%(?:\(\w+\)s|\w+%)$`)

func isPlaceholder(value string) bool {
	if template.MatchString(value) || strings.Contains(value, "...") || strings.Contains(value, "***") {
		return true
	}
	lower := strings.ToLower(value)
	return slices.ContainsFunc(placeholders(), func(word string) bool { return strings.Contains(lower, word) })
}

func placeholders() []string {
	return []string{
		"example", "placeholder", "changeme", "change_me", "change-me", "replace", "redacted", "dummy", "sample",
		"xxxx", "0000000", "1234567890", "0123456789", "abcdefgh", "deadbeef", "your", "insert", "fake", "todo",
	}
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }

// Variable returns the secret values in an environment variable that commands get, so
// that they can be Values of a [Guard]: the value, unless it could be part of ordinary
// text, and the logins, tokens and named secrets in it. They are not sorted and may
// repeat.
//
// If the name does not mean a secret, lists of paths and options of programs are ordinary
// text too, and so are the values of names that mean something else, such as AWS_REGION.
func Variable(name, value string) []string {
	c := collector{}
	for _, s := range findAll(formats(), value) {
		c.addLines(value[s.start:s.end])
	}
	c.addPairs(value)
	c.addLogins(value)
	c.addSchemes(value)
	switch {
	case NamesSecret(name):
		c.addNamed(name, value)
	case isPaths(value):
	default:
		c.addGenerated(value)
		if !namesOther(nameWords(name)) && !strings.HasPrefix(value, "-") && !isOrdinary(value) {
			c.add(value)
			c.addParts(value)
		}
	}
	return c.values
}

// addParts adds the parts of a value between the characters that JSON escapes. In plain
// text the whole value is not found: it could be the syntax of a JSON text.
func (c *collector) addParts(value string) {
	special := func(r rune) bool { return r == '"' || r == '\\' || unicode.IsControl(r) }
	if !strings.ContainsFunc(value, special) {
		return
	}
	for part := range strings.FieldsFuncSeq(value, special) {
		if !isOrdinary(part) && !strings.HasPrefix(part, "-----") {
			c.add(part)
		}
	}
}

func isPaths(value string) bool {
	separator := ":"
	if strings.Contains(value, ";") {
		separator = ";"
	}
	for path := range strings.SplitSeq(value, separator) {
		if path != "" && (!location.MatchString(path) || strings.Contains(path, "://")) {
			return false
		}
	}
	return value != ""
}
