package config

import "slices"

// File is the content of .config/hone.toml.
type File struct {
	Prices   map[string]Price // [prices."provider/name"], by "provider/name"
	Commands map[string]Agent // [commands.NAME], by NAME, as in "command/NAME"

	// Opens are the settings that need the user's trust, in the order of the file.
	Opens []Opening

	keys map[string]any // values by their keys, such as "task.rounds"
}

// Variables returns the names of the user's variables that the file gives to commands,
// the check and agents, but not those of hooks.
func (f File) Variables() []string {
	v := f.Shared()
	names := slices.Concat(CheckEnv.In(v), Variables.In(v))
	for _, a := range f.Commands {
		names = append(names, a.Env...)
	}
	return names
}

// Price is one [prices."provider/name"] section, in USD per million tokens.
// Without cache-read or cache-write, cached tokens cost as much as Input.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache-read"`
	CacheWrite float64 `toml:"cache-write"`
}
