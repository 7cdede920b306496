package check

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"hone/internal/excerpt"
)

// MaxFindings is how many findings of a list [Bound] keeps.
const MaxFindings = 200

const (
	// maxBytes is how long the texts of a list are together, in bytes. MaxText leaves room
	// in it for what a check says about an output. The text of a build does not count
	// (ruling C11).
	maxBytes = 64 << 10
	// minBytes is the length in bytes below which a text is omitted rather than cut.
	minBytes = 1 << 10
	// maxFile is the length in bytes above which the name of a file is cut.
	maxFile = 4 << 10
)

// Bound returns the findings that a model is sent: at most [MaxFindings], with 64 KiB
// of text together. It prefers blocking findings to advisory ones, and earlier ones to
// later ones. It omits the middle of a text that does not fit, and counts the
// other findings: at the end of the result, one finding with More set stands for those
// of one source and with the same flags. To bound a list again changes nothing. The
// result is nil if there are no findings.
func Bound(findings []Finding) []Finding {
	var b bounded
	for _, f := range findings {
		b.add(f)
	}
	return b.findings()
}

// Count returns how many findings there were before the list was bounded.
func Count(findings []Finding) int {
	n := 0
	for _, f := range findings {
		n += max(1, f.More)
	}
	return n
}

// Keys returns the [Key]s of findings, sorted and each once. If some were omitted, it
// returns one key for each source and flags, which does not depend on which they were.
func Keys(findings []Finding) []string {
	var keys []string
	if slices.ContainsFunc(findings, func(f Finding) bool { return f.More > 0 }) {
		sums := map[Finding]uint64{}
		for _, f := range findings {
			sums[f.group()] += f.sum()
		}
		for group, sum := range sums {
			keys = append(keys, Key(group)+hex(sum))
		}
	} else {
		for _, f := range findings {
			keys = append(keys, Key(f))
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// Findings with the same source and flags are counted together.
func (f Finding) group() Finding {
	return Finding{Source: f.Source, Advisory: f.Advisory, Broken: f.Broken, Blocker: f.Blocker}
}

// A finding may count others. The sum of digests does not depend on their order.
func (f Finding) sum() uint64 {
	if f.More > 0 {
		sum, _ := strconv.ParseUint(f.Digest, 16, 64)
		return sum
	}
	d := sha256.Sum256([]byte(Key(f)))
	return binary.BigEndian.Uint64(d[:])
}

func hex(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// bounded is a list of findings that stays within the limits while findings are added.
// The zero value is an empty list.
type bounded struct {
	added   int
	shelves [3]shelf // by rank
	rest    []counted
}

// counted are omitted findings of one group.
type counted struct {
	group Finding
	n     int
	sum   uint64
}

type shelf struct {
	placed []placed
	bytes  int
}

// placed is a finding with its place in the complete list.
type placed struct {
	Finding
	at int
}

func (b *bounded) add(f Finding) {
	b.added++
	if f.More > 0 || !b.shelves[f.rank()].add(placed{f, b.added}) {
		b.omit(f)
	}
}

// 0 is what a model needs most.
func (f Finding) rank() int {
	switch {
	case f.Broken || f.Blocker:
		return 0
	case f.Blocks():
		return 1
	}
	return 2
}

// It cuts the finding if necessary, and reports whether there is room for it.
func (s *shelf) add(f placed) bool {
	if len(s.placed) == MaxFindings {
		return false
	}
	f.File = cut(f.File, maxFile)
	if f.Source != SourceBuild {
		room := maxBytes - s.bytes - len(f.File)
		if len(f.Text) > room && room < minBytes {
			return false
		}
		f.Text = cut(f.Text, room)
		s.bytes += len(f.File) + len(f.Text)
	}
	s.placed = append(s.placed, f)
	return true
}

// The result has at most most bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return excerpt.Middle(text, most-len("\n[... 9999999999 bytes omitted ...]\n"))
}

func (b *bounded) omit(f Finding) {
	i := slices.IndexFunc(b.rest, func(c counted) bool { return c.group == f.group() })
	if i < 0 {
		i, b.rest = len(b.rest), append(b.rest, counted{group: f.group()})
	}
	b.rest[i].n += max(1, f.More)
	b.rest[i].sum += f.sum()
}

func (b *bounded) findings() []Finding {
	var all shelf
	for _, s := range b.shelves {
		for _, f := range s.placed {
			if !all.add(f) {
				b.omit(f.Finding)
			}
		}
	}
	slices.SortFunc(all.placed, func(f, g placed) int { return f.at - g.at })
	var findings []Finding
	for _, f := range all.placed {
		findings = append(findings, f.Finding)
	}
	for _, c := range b.rest {
		findings = append(findings, c.finding())
	}
	return findings
}

func (c counted) finding() Finding {
	f := c.group
	f.More, f.Digest, f.Text = c.n, hex(c.sum), fmt.Sprintf("… and %d more findings", c.n)
	if c.n == 1 {
		f.Text = "… and 1 more finding"
	}
	return f
}
