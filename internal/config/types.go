package config

import (
	"fmt"
	"time"
)

// Duration is a time.Duration that is written as in "90s" and greater than 0.
type Duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a duration", text)
	case parsed <= 0:
		return fmt.Errorf("%q is not greater than 0", text)
	}
	*d = Duration(parsed)
	return nil
}
