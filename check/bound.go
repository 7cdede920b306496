package check

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hone/internal/excerpt"
)

// MaxFindings is how many findings of a list [Bound] keeps.
const MaxFindings = 200

const (
	// maxNotes is how many advisory findings of commands are kept: a build may print hundreds
	// of warnings, and a model needs none of them.
	maxNotes = 20
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
// of text together, of which at most 20 are advisory ones of a command. It prefers blocking findings to advisory ones, and earlier ones to
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
	kept  []Finding
	bytes int
	notes int       // advisory findings of commands
	rest  []Finding // of those that were omitted, one for each group
}

// It cuts the finding if necessary, and omits others that a model needs less.
func (b *bounded) add(f Finding) {
	note := f.Source == SourceCommand && !f.Blocks()
	if f.More > 0 || note && b.notes == maxNotes {
		b.omit(f)
		return
	}
	if note {
		b.notes++
	}
	f.File = cut(f.File, maxFile)
	for {
		room := maxBytes - b.bytes - len(f.File)
		if f.Source == SourceBuild {
			room = len(f.Text)
		}
		if len(b.kept) < MaxFindings && (len(f.Text) <= room || room >= minBytes) {
			f.Text = cut(f.Text, room)
			b.kept = append(b.kept, f)
			b.bytes += f.size()
			return
		}
		least := -1
		for i, other := range b.kept {
			if other.rank() > f.rank() && (least < 0 || other.rank() >= b.kept[least].rank()) {
				least = i
			}
		}
		if least < 0 {
			b.omit(f)
			return
		}
		b.omit(b.kept[least])
		b.bytes -= b.kept[least].size()
		b.kept = slices.Delete(b.kept, least, least+1)
	}
}

// The text of a build does not count.
func (f Finding) size() int {
	if f.Source == SourceBuild {
		return 0
	}
	return len(f.File) + len(f.Text)
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

// The result has at most most bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return excerpt.Middle(text, most-len("\n[... 9999999999 bytes omitted ...]\n"))
}

func (b *bounded) omit(f Finding) {
	i := slices.IndexFunc(b.rest, func(r Finding) bool { return r.group() == f.group() })
	sum := f.sum()
	if i < 0 {
		i, b.rest = len(b.rest), append(b.rest, f.group())
	} else {
		sum += b.rest[i].sum()
	}
	r := &b.rest[i]
	r.More += max(1, f.More)
	r.Digest, r.Text = hex(sum), fmt.Sprintf("… and %d more findings", r.More)
	if r.More == 1 {
		r.Text = "… and 1 more finding"
	}
}

func (b *bounded) findings() []Finding { return slices.Concat(b.kept, b.rest) }

// Tally returns how many findings there are, such as "7 findings in 3 files". Omitted
// findings count. It does not say how many files if a finding has none, or if there is
// only one finding.
func Tally(findings []Finding) string {
	n, files := Count(findings), map[string]bool{}
	for _, f := range findings {
		files[f.File] = true
	}
	text := fmt.Sprintf("%d findings", n)
	switch {
	case n == 1:
		text = "1 finding"
	case files[""] || n == 0:
	case len(files) == 1:
		text += " in 1 file"
	default:
		text += fmt.Sprintf(" in %d files", len(files))
	}
	return text
}

// Difference returns how findings differ from those before, such as "2 gone, 1 new";
// empty if they do not, or if that is not known because a blocking finding of either has
// no ID.
func Difference(before, now []Finding) string {
	if !Blocking(before) {
		return ""
	}
	count := map[string]int{} // of each key now, less before
	for n, list := range [][]Finding{before, now} {
		for _, f := range BlockingOf(list) {
			if f.ID == "" {
				return ""
			}
			count[Key(f)] += 2*n - 1
		}
	}
	gone, added := 0, 0
	for _, n := range count {
		gone, added = gone+max(0, -n), added+max(0, n)
	}
	var parts []string
	if gone > 0 {
		parts = append(parts, fmt.Sprintf("%d gone", gone))
	}
	if added > 0 {
		parts = append(parts, fmt.Sprintf("%d new", added))
	}
	return strings.Join(parts, ", ")
}
