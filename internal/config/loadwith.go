package config

import (
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// LoadWith is Load, and fills the loops' own tables, by name, each a pointer to
// a struct with toml tags.
func LoadWith(root string, sections map[string]any) (File, error) {
	f, err := Load(root)
	if err != nil {
		return f, err
	}
	text, _, err := read(root, HonePath)
	if err != nil {
		return f, err
	}
	var tables map[string]any
	if err := toml.Unmarshal(text, &tables); err != nil {
		return f, err
	}
	for name, into := range sections {
		table, _ := tables[name].(map[string]any)
		spelt := map[string]any{}
		for key, value := range table {
			key = strings.ReplaceAll(key, "_", "-")
			if rest, ok := strings.CutPrefix(key, "hook-"); ok && rest != "timeout" {
				key = "hook_" + rest
			}
			spelt[key] = value
		}
		b, err := toml.Marshal(spelt)
		if err == nil && into != nil {
			err = toml.Unmarshal(b, into)
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}
