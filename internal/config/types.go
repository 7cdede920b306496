package config

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hone/internal/lazyregexp"
)

// Duration is a time greater than 0 as the user writes it: "90s", "10m" or
// "1h30m". Empty means that the file does not set it.
type Duration string

// Value returns the time, and 0 for an empty Duration.
func (d Duration) Value() time.Duration {
	value, _ := time.ParseDuration(string(d)) // [Load] has checked it
	return value
}

const durationHint = `write a number with its unit, such as "90s", "10m" or "1h30m"`

// Size is a number of bytes, written as a number or as [ParseSize] reads it.
type Size int64

// UnmarshalText implements [encoding.TextUnmarshaler]. It never fails, because
// go-toml would return its error without a line. A bad text becomes -1, which
// [Load] refuses.
func (s *Size) UnmarshalText(text []byte) error {
	n, err := ParseSize(string(text))
	if err != nil && strings.TrimSpace(string(text)) != "0" {
		n = -1
	}
	*s = Size(n)
	return nil
}

var sizeText = lazyregexp.New(`^([0-9]+)\s*([kmgt]?)(i?b)?$`)

// ParseSize returns the number of bytes that a text such as "4GB", "512 MiB",
// "64k" or "1048576" means. The units are powers of 1024 in every spelling, as
// is usual for memory. A size of 0, or one that does not fit, is an error.
func ParseSize(s string) (int64, error) {
	m := sizeText.FindStringSubmatch(strings.ToLower(strings.TrimSpace(s)))
	if m == nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	unit := int64(1) << (10 * (1 + strings.Index("kmgt", cmp.Or(m[2], "-"))))
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n < 1 || n > math.MaxInt64/unit {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return n * unit, nil
}
