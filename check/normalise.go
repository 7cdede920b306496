package check

import (
	"bytes"
	"regexp"
	"strings"
)

// What stands for what was taken out.
const (
	someTime     = "<time>"
	someDuration = "<duration>"
	someAddress  = "<address>"
	someID       = "<id>"
	somePort     = "<port>"
	someUUID     = "<uuid>"
	someHex      = "<hex>"
	someTemp     = "<tmp>"
	someSize     = "<size>"
)

// Normalise is a text without what differs between two runs of the same
// failure: dates and times of day, durations (and "(cached)", which go test
// prints in the place of one), memory addresses, numbers of goroutines,
// processes and threads, the random part of temporary paths, ports of the
// loopback interface, UUIDs, hexadecimal numbers of 32 digits and more, colours,
// long rulers of "=", which some test runners fit around a duration, and white
// space at the ends of lines. Seconds since 1970 are taken out where a name
// says what they are. A name in angle brackets stands for each.
//
// What may be the failure itself stays: line numbers, exit statuses, counts,
// versions, sizes, plain numbers. So a text that differs in a way that nobody
// has thought of is different; the result is for comparing, and people are
// shown the text.
//
// It is not longer than five times the text, takes time in proportion to it,
// and does not change when it is normalised again.
func Normalise(text string) string {
	s := scanner{text: withoutColours(text)}
	s.out = make([]byte, 0, len(s.text)+len(s.text)/8)
	s.beginLine()
	for s.at < len(s.text) {
		s.step()
	}
	return string(bytes.TrimRight(s.out, " \t\r\n"))
}

// scanner goes through a text once. What stands to the left of a place is
// always looked up in what has been written, and what was not taken out at its
// beginning is passed over up to the end of the word: so a second pass sees what
// the first one saw.
type scanner struct {
	text  string
	at    int
	out   []byte
	line  int  // where the line begins in out
	timed bool // a time was taken out of the line
	frame bool // the line is a call in a stack trace of Go
	// ahead is what will be taken out further on, as a word says that stands
	// before it.
	ahead struct {
		from, to int
		name     string
	}
}

// step takes out what begins here, or passes over it.
func (s *scanner) step() {
	if s.ahead.name != "" && s.at == s.ahead.from {
		s.take(s.ahead.to, s.ahead.name)
		return
	}
	c := s.text[s.at]
	switch {
	case isWord(c):
		s.word()
	case c == '\n':
		s.out = append(bytes.TrimRight(s.out, " \t\r"), '\n')
		s.at++
		s.beginLine()
	case c == '/' || c == '\\':
		s.separator()
	case c == '=':
		s.ruler()
	default:
		s.sign(c)
	}
}

// sign looks at what begins with a character that is none of a word.
func (s *scanner) sign(c byte) {
	switch c {
	case '(':
		if strings.HasPrefix(s.text[s.at:], "(cached)") {
			s.take(s.at+len("(cached)"), someDuration)
			return
		}
		if bytes.HasSuffix(s.out, []byte("' ")) && threadName.Match(s.out[max(s.line, len(s.out)-120):]) {
			s.expect(bracketedID, someID)
		}
	case '%', '$':
		if n := tempVariable(s.rest()); n > 0 && !isPath(s.last()) {
			s.take(s.at+n, someTemp)
			return
		}
	case '@':
		if isWord(s.last()) || s.last() == ';' {
			s.expect(identityHash, someAddress)
		}
	case '[':
		s.bracket()
	case '<':
		s.timed = s.timed || strings.HasPrefix(s.text[s.at:], someTime)
	}
	s.pass(s.at + 1)
}

var (
	identityHash = regexp.MustCompile(`^@([0-9a-f]{5,8})`)
	ipv6Loopback = regexp.MustCompile(`^\[::1\]:(\d{1,5})`)
	syslogID     = regexp.MustCompile(`^\[(\d{1,7})\]:`)
	syslogName   = regexp.MustCompile(`^[A-Za-z][\w./-]{0,47}$`)
	leftOut      = regexp.MustCompile(`^\[\.\.\. (\d+) (?:more )?bytes `)
	threadName   = regexp.MustCompile(`thread '[^'\n]{0,100}' $`)
	bracketedID  = regexp.MustCompile(`^\((\d+)\)`)
	valgrindID   = regexp.MustCompile(`^==(\d{1,10})==`)
)

// bracket looks at what stands in square brackets.
func (s *scanner) bracket() {
	switch {
	case s.expect(ipv6Loopback, somePort):
	case s.expect(leftOut, someSize):
	case isWord(s.last()) && (s.timed || len(s.out)-s.line < 64 && syslogName.Match(s.out[s.line:])):
		if m := syslogID.FindStringSubmatch(s.rest()); m != nil && (s.timed || len(m[1]) >= 3) {
			s.expect(syslogID, someID)
		}
	}
}

// ruler passes over equal signs.
func (s *scanner) ruler() {
	const longest = 8
	n := 1
	for s.at+n < len(s.text) && s.text[s.at+n] == '=' {
		n++
	}
	if n == 2 {
		s.expect(valgrindID, someID)
	}
	s.out = append(s.out, "========"[:min(n, longest)]...)
	s.at += n
}

// separator looks at what follows a slash in a path.
func (s *scanner) separator() {
	rest, below := s.rest(), bytes.HasSuffix(s.out, []byte(someTemp))
	if !below && (!isPath(s.last()) || bytes.HasSuffix(s.out, []byte("://"))) {
		if n := tempFolder(rest); n > 0 {
			s.take(s.at+n, someTemp)
			return
		}
	}
	n := randomName(rest)
	switch {
	case n > 0 && below:
		s.at += n
	case n > 0:
		s.pass(s.at + 1)
		s.take(s.at+n-1, someTemp)
	default:
		s.pass(s.at + 1)
	}
}

// word takes out a word, with what belongs to it, or passes over it and over
// all that is joined to it by dots.
func (s *scanner) word() {
	if s.last() != '.' {
		if n, name := s.volatile(); n > 0 {
			s.take(s.at+n, name)
			return
		}
	}
	end := s.wordEnd()
	s.hint(s.text[s.at:end], end)
	s.pass(end)
}

// wordEnd is where the word ends that begins here, with those that are joined
// to it.
func (s *scanner) wordEnd() int {
	end := s.at
	for end < len(s.text) && (isWord(s.text[end]) || s.text[end] == '.' && end+1 < len(s.text) && isWord(s.text[end+1])) {
		end++
	}
	return end
}

// expect remembers what has to be taken out further on: the group of the
// expression, if it matches here and a word ends where the group does.
func (s *scanner) expect(re *regexp.Regexp, name string) bool { return s.expectAt(s.at, re, name) }

func (s *scanner) expectAt(at int, re *regexp.Regexp, name string) bool {
	m := re.FindStringSubmatchIndex(window(s.text[at:]))
	if m == nil || !endsWord(s.text[at+m[3]:]) {
		return false
	}
	s.ahead.from, s.ahead.to, s.ahead.name = at+m[2], at+m[3], name
	return true
}

// take writes a name for everything up to a place.
func (s *scanner) take(to int, name string) {
	s.out = append(s.out, name...)
	s.at = to
	s.timed = s.timed || name == someTime
}

// pass writes everything up to a place as it is.
func (s *scanner) pass(to int) {
	s.out = append(s.out, s.text[s.at:to]...)
	s.at = to
}

// last is the last byte that was written; a newline at the beginning.
func (s *scanner) last() byte {
	if len(s.out) == 0 {
		return '\n'
	}
	return s.out[len(s.out)-1]
}

func (s *scanner) rest() string { return window(s.text[s.at:]) }

// window is as much of a text as any expression needs, so that no place costs
// more than another.
func window(text string) string { return text[:min(len(text), 320)] }

// beginLine looks at the line that begins here and the one after it: a call in
// a stack trace has its place in the line below it.
func (s *scanner) beginLine() {
	s.line, s.timed, s.frame = len(s.out), false, false
	_, below, more := strings.Cut(s.text[s.at:], "\n")
	if more && strings.HasPrefix(below, "\t") {
		below, _, _ = strings.Cut(below, "\n")
		s.frame = strings.Contains(below, " +0x") || strings.Contains(below, " +"+someAddress)
	}
}

// isWord reports whether a byte can stand in a word.
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isPath reports whether a byte can stand before a slash within a path.
func isPath(c byte) bool { return isWord(c) || strings.IndexByte(`./\-+@%~#$`, c) >= 0 }

// endsWord reports whether a word ends before a text, also where words are
// joined by dots.
func endsWord(text string) bool {
	switch {
	case text == "":
		return true
	case text[0] == '.':
		return len(text) == 1 || !isWord(text[1])
	}
	return !isWord(text[0])
}

// withoutColours is a text without the sequences by which terminals are told
// of colours, links and the like.
func withoutColours(text string) string {
	if strings.IndexByte(text, '\x1b') < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for text != "" {
		plain, sequence, _ := strings.Cut(text, "\x1b")
		out = append(out, plain...)
		text = sequence[escapeLen(sequence):]
	}
	return string(out)
}

var (
	controlSequence = regexp.MustCompile(`^\[[0-?]{0,64}[ -/]{0,4}[@-~]`)
	charset         = regexp.MustCompile(`^[()][0-9A-B]`)
)

// escapeLen is how long a sequence is, after its escape character.
func escapeLen(text string) int {
	for _, re := range []*regexp.Regexp{controlSequence, charset} {
		if m := re.FindStringIndex(window(text)); m != nil {
			return m[1]
		}
	}
	if !strings.HasPrefix(text, "]") {
		return 0
	}
	end := strings.IndexAny(text, "\a\x1b\n")
	switch {
	case end < 0 || text[end] == '\n':
		return 0
	case text[end] == '\a':
		return end + 1
	}
	return end + len("\x1b") + len(text[end+1:]) - len(strings.TrimPrefix(text[end+1:], `\`))
}
