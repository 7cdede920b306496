package check

import (
	"bytes"
	"strings"

	"hone/internal/lazyregexp"
)

// The placeholders for volatile text.
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

// Normalize returns a text without what differs between two runs of the same
// failure. It replaces with placeholders, or removes: dates and times of day,
// durations (and "(cached)", which go test prints instead), memory addresses,
// numbers of goroutines, processes and threads, the random part of temporary
// paths, ports of the loopback interface, UUIDs, hexadecimal numbers of 32
// digits and more, colors, long rulers of "=", which some test runners fit
// around a duration, and white space at the ends of lines. Unix times are
// replaced only after a name that announces them.
//
// Everything that may be the failure itself stays: line numbers, exit statuses,
// counts, versions, sizes, plain numbers. Two texts that differ in any other
// way stay different. The result is for comparison; show the user the text
// itself.
//
// The result is at most five times as long as the text. Normalize takes linear
// time, and normalizing twice changes nothing more.
func Normalize(text string) string {
	s := scanner{text: withoutColors(text)}
	s.out = make([]byte, 0, len(s.text)+len(s.text)/8)
	s.beginLine()
	for s.at < len(s.text) {
		s.step()
	}
	return string(bytes.TrimRight(s.out, " \t\r\n"))
}

// scanner scans a text once. It looks backwards only in its output, and it
// skips words that it does not replace as a whole. So a second pass sees what
// the first one saw.
type scanner struct {
	text  string
	at    int
	out   []byte
	line  int  // start of the line in out
	timed bool // the line had a time
	frame bool // the line is a call in a Go stack trace
	// expected is a text further on to replace, which a preceding word
	// announced.
	expected struct {
		from, to int
		name     string
	}
}

// step replaces or copies what starts here.
func (s *scanner) step() {
	if s.expected.name != "" && s.at == s.expected.from {
		s.replace(s.expected.to, s.expected.name)
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
		s.symbol(c)
	}
}

// symbol handles a character that is not part of a word.
func (s *scanner) symbol(c byte) {
	switch c {
	case '(':
		if strings.HasPrefix(s.text[s.at:], "(cached)") {
			s.replace(s.at+len("(cached)"), someDuration)
			return
		}
		if bytes.HasSuffix(s.out, []byte("' ")) && threadName.Match(s.out[max(s.line, len(s.out)-120):]) {
			s.expect(bracketedID, someID)
		}
	case '%', '$':
		if n := tempVariable(s.rest()); n > 0 && !isPath(s.last()) {
			s.replace(s.at+n, someTemp)
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
	s.copyTo(s.at + 1)
}

var (
	identityHash = lazyregexp.New(`^@([0-9a-f]{5,8})`)
	ipv6Loopback = lazyregexp.New(`^\[::1\]:(\d{1,5})`)
	syslogID     = lazyregexp.New(`^\[(\d{1,7})\]:`)
	syslogName   = lazyregexp.New(`^[A-Za-z][\w./-]{0,47}$`)
	leftOut      = lazyregexp.New(`^\[\.\.\. (\d+) (?:more )?bytes `)
	threadName   = lazyregexp.New(`thread '[^'\n]{0,100}' $`)
	bracketedID  = lazyregexp.New(`^\((\d+)\)`)
	valgrindID   = lazyregexp.New(`^==(\d{1,10})==`)
)

// bracket handles an opening square bracket.
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

// ruler handles a run of equal signs.
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

// separator handles a slash in a path.
func (s *scanner) separator() {
	rest, below := s.rest(), bytes.HasSuffix(s.out, []byte(someTemp))
	if !below && (!isPath(s.last()) || bytes.HasSuffix(s.out, []byte("://"))) {
		if n := tempFolder(rest); n > 0 {
			s.replace(s.at+n, someTemp)
			return
		}
	}
	n := randomName(rest)
	switch {
	case n > 0 && below:
		s.at += n
	case n > 0:
		s.copyTo(s.at + 1)
		s.replace(s.at+n-1, someTemp)
	default:
		s.copyTo(s.at + 1)
	}
}

// word replaces volatile text that starts with a word, or copies the word and
// all words joined to it by dots.
func (s *scanner) word() {
	if s.last() != '.' {
		if n, name := s.volatile(); n > 0 {
			s.replace(s.at+n, name)
			return
		}
	}
	end := s.wordEnd()
	s.expectAfter(s.text[s.at:end], end)
	s.copyTo(end)
}

// wordEnd returns the end of the word that starts here, including words joined
// to it by dots.
func (s *scanner) wordEnd() int {
	end := s.at
	for end < len(s.text) && (isWord(s.text[end]) || s.text[end] == '.' && end+1 < len(s.text) && isWord(s.text[end+1])) {
		end++
	}
	return end
}

// expect sets expected to the group of the expression, if it matches here and a
// word ends where the group does.
func (s *scanner) expect(re *lazyregexp.Regexp, name string) bool { return s.expectAt(s.at, re, name) }

func (s *scanner) expectAt(at int, re *lazyregexp.Regexp, name string) bool {
	m := re.FindStringSubmatchIndex(window(s.text[at:]))
	if m == nil || !endsWord(s.text[at+m[3]:]) {
		return false
	}
	s.expected.from, s.expected.to, s.expected.name = at+m[2], at+m[3], name
	return true
}

// replace writes a placeholder for everything up to an offset.
func (s *scanner) replace(to int, name string) {
	s.out = append(s.out, name...)
	s.at = to
	s.timed = s.timed || name == someTime
}

// copyTo copies everything up to an offset.
func (s *scanner) copyTo(to int) {
	s.out = append(s.out, s.text[s.at:to]...)
	s.at = to
}

// last returns the last byte written, or a newline at the start.
func (s *scanner) last() byte {
	if len(s.out) == 0 {
		return '\n'
	}
	return s.out[len(s.out)-1]
}

func (s *scanner) rest() string { return window(s.text[s.at:]) }

// window returns the part of a text that any expression needs, so that every
// match has bounded cost.
func window(text string) string { return text[:min(len(text), 320)] }

// beginLine inspects the line that starts here and the next one: in a stack
// trace, the line below a call has its position.
func (s *scanner) beginLine() {
	s.line, s.timed, s.frame = len(s.out), false, false
	_, below, more := strings.Cut(s.text[s.at:], "\n")
	if more && strings.HasPrefix(below, "\t") {
		below, _, _ = strings.Cut(below, "\n")
		s.frame = strings.Contains(below, " +0x") || strings.Contains(below, " +"+someAddress)
	}
}

// isWord reports whether a byte can be part of a word.
func isWord(c byte) bool {
	return c == '_' || isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isPath reports whether a byte can precede a slash within a path.
func isPath(c byte) bool { return isWord(c) || strings.IndexByte(`./\-+@%~#$`, c) >= 0 }

// endsWord reports whether a word ends before a text. A dot joins words.
func endsWord(text string) bool {
	switch {
	case text == "":
		return true
	case text[0] == '.':
		return len(text) == 1 || !isWord(text[1])
	}
	return !isWord(text[0])
}

// withoutColors removes terminal escape sequences for colors, links and the
// like.
func withoutColors(text string) string {
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
	controlSequence = lazyregexp.New(`^\[[0-?]{0,64}[ -/]{0,4}[@-~]`)
	charset         = lazyregexp.New(`^[()][0-9A-B]`)
)

// escapeLen returns the length of a sequence after its escape character.
func escapeLen(text string) int {
	for _, re := range []*lazyregexp.Regexp{controlSequence, charset} {
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
