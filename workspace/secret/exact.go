package secret

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"iter"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"hone/internal/lazyregexp"
)

// The longest come first, because one may be the start of another.
func exactShapes(what string, values []string) []shape {
	var list []shape
	for _, v := range values {
		if len(v) >= minKnown {
			for _, s := range spellings(v) {
				list = append(list, shape{what: what, literals: []string{s}, find: findExact})
			}
			list = append(list, base64Shapes(what, v)...)
		}
	}
	return list
}

// findExact finds the literal itself. If it starts within an escape of a JSON
// string, an escape of one letter, such as \n, stays. Any other belongs to the
// literal, because the rest of the escape alone would not be JSON.
func findExact(text string, begin, end int) (from, to int, ok bool) {
	at := escapeAround(text, begin)
	if at == begin-1 && strings.IndexByte("bfnrt", text[begin]) >= 0 {
		return begin + 1, end, true
	}
	return at, end, true
}

// escapeAround returns where the escape of a JSON string starts that a position is
// within; the position itself if there is none.
func escapeAround(text string, begin int) int {
	for back := 1; back <= len(`\u000`) && back <= begin; back++ {
		at := begin - back
		if text[at] != '\\' {
			continue
		}
		slashes := 1
		for at-slashes >= 0 && text[at-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 1 && (back == 1 || text[at+1] == 'u') {
			return at
		}
		break
	}
	return begin
}

// spellings returns a value as it is, and as JSON, URLs and hex write
// it. A spelling that would be valid JSON syntax, not only text in a JSON
// string, is omitted: replacing it would break the JSON.
func spellings(value string) []string {
	all := []string{url.QueryEscape(value), url.PathEscape(value)}
	if !strings.ContainsAny(value, "\"\\\n\t\r") {
		all = append(all, value)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if quoted, err := json.Marshal(value); err == nil && enc.Encode(value) == nil {
		all = append(all, string(quoted[1:len(quoted)-1]), strings.TrimSuffix(b.String(), "\"\n")[1:])
	}
	if len(value) >= 12 {
		all = append(all, hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value))))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// base64Shapes returns shapes that find the base64 form of a value, of which the first
// and the last characters depend on what is before and after the value: one for each of
// the three positions.
func base64Shapes(what, value string) (list []shape) {
	if len(value) < 12 {
		return nil
	}
	for shift := range 3 {
		n := shift + len(value)
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + value)[:n/3*3]) // whole groups of three bytes
		before, after := []int{0, 3, 2}[shift], []int{0, 2, 3}[n%3]                                         // characters with bits of the value
		list = append(list, shape{what: what, literals: []string{encoded[(shift+2)/3*4:]}, find: func(text string, begin, end int) (from, to int, ok bool) {
			from, _, ok = findExact(text, begin, end)
			if from == begin {
				from = base64Before(text, begin, before)
			}
			return from, base64After(text, end, after), ok
		}})
	}
	return list
}

// base64Before returns where up to n characters of base64 before a position start. An
// escape of a JSON string is none of them.
func base64Before(text string, begin, n int) int {
	for ; n > 0 && begin > 0 && isBase64(rune(text[begin-1])) && escapeAround(text, begin-1) == begin-1; n-- {
		begin--
	}
	return begin
}

func base64After(text string, end, n int) int {
	for ; n > 0 && end < len(text) && isBase64(rune(text[end])); n-- {
		end++
	}
	return end
}

// unseen yields the parts of a text that a terminal does not show: control sequences
// and characters, also as JSON and hone's own screens write them, characters without
// width, and what a backspace overwrites. They are in order and do not overlap.
func unseen(text string) iter.Seq[[2]int] {
	return func(yield func([2]int) bool) {
		end := 0 // of the last gap
		for i := 0; i < len(text); {
			if c := text[i]; c >= ' ' && c < 0x7f && c != '\\' || c == '\n' {
				i++ // nearly all text
				continue
			}
			from, to := unseenAt(text, end, i)
			if from < to {
				if end = to; !yield([2]int{from, to}) {
					return
				}
			}
			i = to
		}
	}
}

// unseenAt returns the part that is found at i, but begins no earlier than end. If
// there is none it is empty, and ends where the next one may begin.
func unseenAt(text string, end, i int) (from, to int) {
	r, n := utf8.DecodeRuneInString(text[i:])
	switch {
	case r == '\b':
		last, back := utf8.DecodeLastRuneInString(text[end:i])
		if last == '\n' {
			back = 0
		}
		return i - back, i + 1
	case r == 0x1b, r == 0x9b, strings.HasPrefix(text[i:], `\u00`), strings.HasPrefix(text[i:], `\x`):
		if at := sequence.FindStringIndex(text[i:]); at != nil {
			return i, i + at[1]
		}
	case r < ' ' && r != '\t' && r != '\r', r == 0x7f, r == 0xad, r == 0x200b, r == 0x2060, r == 0xfeff:
		return i, i + n
	}
	return i + n, i + n
}

// sequence matches a control sequence, or an escaped control character.
var sequence = lazyregexp.New("^(?:(?:\x1b|\\\\u001[bB]|\\\\x1[bB])" +
	`(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\\"\n]{0,500}(?:\x07|\\u0007|\\x07|\x1b\\|\\u001b\\\\)|[PX^_][^\x1b\\"\n]{0,500}(?:\x1b\\|\\u001b\\\\|\\x1b\\)|[()][0-9A-B]|[=>78cDEHMNOZ])` +
	"|(?:\u009b|\\\\u009[bB]|\\\\x9[bB])[0-?]*[ -/]*[@-~]" +
	`|\\(?:u00|x)(?:0[0-8bBcCeEfF]|1[0-9aAc-fC-F]|7[fF]))`)

// findAll returns the secrets in a text, as it is and as a terminal shows it, in
// order and without overlaps.
func findAll(s *scanner, text string) []span {
	found := s.all(text)
	var shown strings.Builder
	at := 0
	for gap := range unseen(text) {
		shown.WriteString(text[at:gap[0]])
		at = gap[1]
	}
	if at == 0 {
		return merged(found)
	}
	shown.WriteString(text[at:])
	hidden := s.all(shown.String())
	if len(hidden) == 0 {
		return merged(found) // a binary output has more gaps than text
	}
	gaps := slices.Collect(unseen(text))
	for _, f := range hidden {
		found = append(found, span{withGaps(f.start, gaps), withGaps(f.end-1, gaps) + 1, f.what})
	}
	return merged(found)
}

func merged(found []span) []span {
	slices.SortFunc(found, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	var apart []span
	for _, f := range found {
		if last := len(apart) - 1; last >= 0 && f.start < apart[last].end {
			apart[last].end = max(apart[last].end, f.end)
		} else {
			apart = append(apart, f)
		}
	}
	return apart
}

// withGaps returns the position in a text for one in the text without the gaps.
func withGaps(at int, gaps [][2]int) int {
	for _, gap := range gaps {
		if gap[0] > at {
			break
		}
		at += gap[1] - gap[0]
	}
	return at
}

func replace(text string, found []span, mark string) string {
	if len(found) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range found {
		b.WriteString(text[at:f.start])
		b.WriteString(mark)
		at = f.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// FileState identifies the contents of a file without reading them: a change of
// the contents changes the state, unless it comes within the resolution of the
// file system's clock after Changed.
type FileState struct {
	Path          string // relative to the root
	Device, Inode uint64
	Size          int64
	Modified      int64 // in nanoseconds since 1970
	Changed       int64 // last change of the inode in nanoseconds since 1970; 0 if unknown
}

// clockStep is the longest time between two steps of a file system's clock.
const clockStep = 2 * time.Second

// isReliable reports whether a change after a time would show in the state.
func (s FileState) isReliable(at time.Time) bool {
	return s.Changed != 0 && s.Changed < at.Add(-clockStep).UnixNano()
}

func (s FileState) digest() cleanDigest {
	b := make([]byte, 0, 128)
	for _, n := range []uint64{s.Device, s.Inode, uint64(s.Size), uint64(s.Modified), uint64(s.Changed)} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := sha256.Sum256(append(b, s.Path...))
	return cleanDigest(sum[:16])
}

type cleanDigest [16]byte

// cleanFiles is the set of files whose contents are not withheld, whatever the
// Secrets of the guard are. Several goroutines may use it at once.
type cleanFiles struct {
	mu    sync.Mutex
	list  map[cleanDigest]bool // whether this process used it
	added int                  // how many this process added
}

// IsClean reports whether MarkClean was called for a file in the same state by
// this guard, or by one that WithSecrets derived from it.
func (g *Guard) IsClean(s FileState) bool {
	if g == nil || g.clean == nil {
		return false
	}
	d := s.digest()
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	used, ok := g.clean.list[d]
	if ok && !used {
		g.clean.list[d] = true
	}
	return ok
}

// MarkClean remembers that there is no secret in the contents of a file: Withheld
// gave no reason except [ValueReason], or they are not a text. They were read
// after the time at, and s is the state before that. MarkClean does nothing if a
// later change might not show in the state.
func (g *Guard) MarkClean(s FileState, at time.Time) {
	if g == nil || g.clean == nil || !s.isReliable(at) {
		return
	}
	d := s.digest()
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	g.clean.list[d] = true
	g.clean.added++
}

// CleanList returns the files for which MarkClean or IsClean was called, for
// another guard's AddClean. key authenticates the list. It is nil if the list
// would hardly differ from the one that was added: reading a few files again costs
// less than storing it.
func (g *Guard) CleanList(key []byte) []byte {
	if g == nil || g.clean == nil {
		return nil
	}
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	var list []byte
	for d, used := range g.clean.list {
		if used {
			list = append(list, d[:]...)
		}
	}
	all, used := len(g.clean.list), len(list)/len(cleanDigest{})
	if g.clean.added <= 16+all/64 && used >= all/2 {
		return nil
	}
	return append(g.sealOf(key, list), list...)
}

// AddClean adds what CleanList returned to the files that the guard remembers. It
// ignores a list that was damaged, or made with another key or by a guard with
// other Known values or send patterns: that guard judged otherwise.
func (g *Guard) AddClean(key, sealed []byte) {
	if g == nil || g.clean == nil || len(sealed) < sha256.Size {
		return
	}
	list := sealed[sha256.Size:]
	if !hmac.Equal(sealed[:sha256.Size], g.sealOf(key, list)) {
		return
	}
	g.clean.mu.Lock()
	defer g.clean.mu.Unlock()
	for d := range slices.Chunk(list, len(cleanDigest{})) {
		g.clean.list[cleanDigest(d)] = false
	}
}

// sealOf authenticates a list, with everything of the guard that its judgement
// depends on.
func (g *Guard) sealOf(key, list []byte) []byte {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%q %q\n", g.Known, g.patterns)
	mac.Write(list)
	return mac.Sum(nil)
}
