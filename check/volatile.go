package check

import (
	"bytes"
	"strings"

	"hone/internal/lazyregexp"
)

// Parts of times.
const (
	yearPart  = `(?:19|20)\d\d`
	monthPart = `(?:0[1-9]|1[0-2])`
	dayPart   = `(?:0[1-9]|[12]\d|3[01])`
	clockPart = `(?:[01]?\d|2[0-3]):[0-5]\d:[0-6]\d(?:[.,]\d{1,12})?(?: ?[AP]M)?`
	zonePart  = `(?:Z| ?(?:UTC|GMT|CES?T|MSK|BST|IST|JST|[ECMP][SD]T)| ?[+-]\d\d:?\d\d(?: (?:UTC|GMT|CES?T|MSK|BST|IST|JST|[ECMP][SD]T|[+-]\d\d(?:\d\d)?))?)?`
	monthName = `(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}`
	weekday   = `(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?`
	dayClock  = `(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-6]\d(?:[.,]\d{1,12})?)?(?: ?[AP]M)?`
	dayZone   = dayClock + zonePart
)

var (
	dateTime  = lazyregexp.New(`^` + yearPart + `(?:-` + monthPart + `-|/` + monthPart + `/)` + dayPart + `(?:(?:[T_]|,? )` + dayZone + `(?: m=[+-]\d+\.\d+)?)?\b`)
	basicTime = lazyregexp.New(`^` + yearPart + monthPart + dayPart + `[-_T](?:[01]\d|2[0-3])[0-5]\d[0-6]\d(?:\.\d{1,12})?Z?\b`)
	clock     = lazyregexp.New(`^` + clockPart + zonePart + `\b`)
	logTime   = lazyregexp.New(`^\d\d/(?:` + monthName + `|\d\d)/\d{4}[: ]` + dayZone + `\b`)
	dayFirst  = lazyregexp.New(`^\d{1,2}[ -]` + monthName + `[ -](?:\d\d)?\d\d,? ` + dayZone + `\b`)
	weekFirst = lazyregexp.New(`^` + weekday + `,? \d{1,2}[ -]` + monthName + `[ -](?:\d\d)?\d\d,? ` + dayZone + `\b`)
	unixDate  = lazyregexp.New(`^(?:` + weekday + `,? )?` + monthName + ` {1,2}\d{1,2} ` + dayZone + `(?: \d{4})?\b`)
	longDate  = lazyregexp.New(`^(?:` + weekday + `,? )?` + monthName + ` {1,2}\d{1,2}, \d{4}(?:,? (?:at )?` + dayZone + `)?\b`)
)

// Parts of durations. Whole minutes or hours do not count: they may be a
// size, and a measured duration is never whole.
const number = `\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?`

var (
	shortSpan = lazyregexp.New(`^(?:\d+h ?)?(?:\d+m ?)?` + number + `(?:ns|us|µs|μs|ms|s)\b`)
	namedSpan = lazyregexp.New(`^` + number + ` ?(?:nanosec(?:ond)?s?|microsec(?:ond)?s?|millisec(?:ond)?s?|msecs?|sec(?:ond)?s?|min(?:ute)?s?|hours?)\b`)
	apartSpan = lazyregexp.New(`^` + number + ` (?:ms|ns|µs|μs)\b`)
	realSpan  = lazyregexp.New(`^\d+\.\d+ s\b`)
	wholeSpan = lazyregexp.New(`^\d+ s\b`)
	clockSpan = lazyregexp.New(`^\d{1,3}:\d\d(?:\.\d+)? min\b`)
)

var (
	uuid      = lazyregexp.New(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b`)
	ipv4Port  = lazyregexp.New(`^127\.\d{1,3}\.\d{1,3}\.\d{1,3}:(\d{1,5})`)
	traceLine = lazyregexp.New(`#\d{1,3} +$`)
)

// volatile returns the length of the volatile text that starts here with a
// word, and its placeholder; 0 if there is none.
func (s *scanner) volatile() (n int, name string) {
	rest := s.rest()
	c := rest[0]
	switch {
	case isHex(c) && len(rest) > 8 && rest[8] == '-' && uuid.MatchString(rest):
		return 36, someUUID
	case strings.HasPrefix(rest, "0x"):
		return s.address()
	case isHex(c) && s.hexLen() > 0:
		return s.hexLen(), someHex
	case isDigit(c):
		return s.measured(rest)
	case startsDay(rest):
		return longest(rest, weekFirst, longDate, unixDate), someTime
	case len(rest) > 3 && isDrive(rest):
		return tempDrive(rest), someTemp
	}
	return 0, ""
}

// measured returns the length of a time or duration, and its placeholder.
func (s *scanner) measured(rest string) (n int, name string) {
	digits := 0
	for digits < len(rest) && isDigit(rest[digits]) {
		digits++
	}
	if strings.IndexByte("./-", s.last()) >= 0 || !mayContinue(rest[digits:]) {
		return 0, ""
	}
	if n := s.timeLen(rest, digits); n > 0 {
		return n, someTime
	}
	if n := longest(rest, shortSpan, namedSpan, apartSpan, realSpan, clockSpan); n > 0 {
		return n, someDuration
	}
	for _, before := range []string{"in ", "took ", "after ", "estimated ", "("} {
		if bytes.HasSuffix(s.out, []byte(before)) {
			return longest(rest, wholeSpan), someDuration
		}
	}
	return 0, ""
}

// mayContinue reports whether text can follow the first digits of a time or
// duration. It is a fast path that spares most numbers the regular expressions.
func mayContinue(text string) bool {
	switch {
	case len(text) < 2:
		return text == "s"
	case text[0] == ' ':
		return isWord(text[1]) && !isDigit(text[1])
	}
	return isWord(text[0]) || strings.IndexByte(".,:-/", text[0]) >= 0 && isWord(text[1])
}

// timeLen returns the length of a date or time that starts with that many
// digits, or 0.
func (s *scanner) timeLen(rest string, digits int) int {
	switch {
	case digits == 4 && (rest[4] == '-' || rest[4] == '/'):
		return longest(rest, dateTime)
	case digits == 8:
		return longest(rest, basicTime)
	case digits > 2:
		return 0
	case rest[digits] == ':' && s.last() != ':':
		return longest(rest, clock)
	}
	return longest(rest, logTime, dayFirst)
}

// address returns the length of a hexadecimal memory address, and its
// placeholder. A number counts if it has the size of an address or occurs where
// addresses do.
func (s *scanner) address() (n int, name string) {
	rest := s.rest()
	n = len("0x")
	for n < len(rest) && isHex(rest[n]) {
		n++
	}
	if n == len("0x") || n < len(rest) && isWord(rest[n]) {
		return 0, ""
	}
	digits := len(strings.TrimLeft(rest[len("0x"):n], "0"))
	kernel := digits == 16 && strings.HasPrefix(rest, "0xffff")
	if kernel || 9 <= digits && digits <= 12 || s.frame || s.isAddressContext(digits) {
		return n, someAddress
	}
	return 0, ""
}

// isAddressContext reports whether the preceding output says that a number of
// that many hexadecimal digits is an address.
func (s *scanner) isAddressContext(digits int) bool {
	before := s.out[max(s.line, len(s.out)-16):]
	for _, end := range []string{"+", "pc=", "sp=", "fp=", "lr="} {
		if bytes.HasSuffix(before, []byte(end)) {
			return true
		}
	}
	return digits >= 7 && bytes.HasSuffix(before, []byte("at ")) || traceLine.Match(before)
}

// hexLen returns the length of a hexadecimal number of at least 32 digits, like
// a checksum, or 0. It must contain a letter.
func (s *scanner) hexLen() int {
	n, letters := 0, false
	for s.at+n < len(s.text) && isHex(s.text[s.at+n]) {
		letters = letters || !isDigit(s.text[s.at+n])
		n++
	}
	if n < 32 || !letters || s.at+n < len(s.text) && isWord(s.text[s.at+n]) {
		return 0
	}
	return n
}

// What can follow the words that expectAfter knows.
var (
	afterGoroutine = lazyregexp.New(`^ (\d+)`)
	afterPID       = lazyregexp.New(`^["']?[ =:#]{1,3}(\d+)`)
	afterHost      = lazyregexp.New(`^:(\d{1,5})`)
	afterNode      = lazyregexp.New(`^:(\d+)\)`)
	afterTime      = lazyregexp.New(`^="(\d+(?:\.\d+)?)"`)
	afterStamp     = lazyregexp.New(`^["']?[ \t]?[=:][ \t]?["']?(1\d{9}(?:\d{9}|\d{6}|\d{3}|\.\d+)?)`)
	afterElapsed   = lazyregexp.New(`^["']?[ \t]?[=:][ \t]?["']?(\d+(?:\.\d+)?)`)
	afterMillis    = lazyregexp.New(`^["']?[ \t]?[=:]?[ \t]?["']?(\d+(?:\.\d+)?)`)
)

// expectAfter expects a volatile number after a word that announces one.
func (s *scanner) expectAfter(word string, end int) {
	if dot := strings.LastIndexByte(word, '.'); dot >= 0 && !isDigit(word[0]) {
		word = word[dot+1:]
	}
	if len(word) > len("duration_ms") {
		return
	}
	switch strings.ToLower(word) {
	case "goroutine":
		s.expectAt(end, afterGoroutine, someID)
	case "pid", "ppid":
		s.expectAt(end, afterPID, someID)
	case "localhost":
		s.expectAt(end, afterHost, somePort)
	case "node":
		if s.last() == '(' {
			s.expectAt(end, afterNode, someID)
		}
	case "time", "ts", "timestamp", "epoch":
		_ = s.expectAt(end, afterTime, someDuration) || s.expectAt(end, afterStamp, someTime)
	case "elapsed", "duration":
		s.expectAt(end, afterElapsed, someDuration)
	case "elapsed_ms", "duration_ms":
		s.expectAt(end, afterMillis, someDuration)
	default:
		if strings.HasPrefix(word, "127.") {
			s.expect(ipv4Port, somePort)
		}
	}
}

// longest returns the length that the first matching expression matches, or 0.
func longest(text string, res ...*lazyregexp.Regexp) int {
	for _, re := range res {
		if m := re.FindStringIndex(text); m != nil {
			return m[1]
		}
	}
	return 0
}

// startsDay reports whether a text starts like the name of a weekday or month.
func startsDay(text string) bool {
	return len(text) > 3 && strings.Contains("Mon Tue Wed Thu Fri Sat Sun Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", text[:3])
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }
