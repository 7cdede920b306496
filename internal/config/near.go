package config

import (
	"fmt"
	"strings"

	"hone/internal/near"
)

func unknownHint(key string, known []string) string {
	if best := near.Name(dashed(key), known); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	return "remove it, or use one of: " + strings.Join(known, ", ")
}
