package config

// File is the content of .config/hone.toml, without the sections of the loops.
// A field is zero if the file does not set it; the code that reads the field has
// the default.
type File struct {
	Model    Model            `toml:"model"`
	Limits   Limits           `toml:"limits"`
	Check    Check            `toml:"check"`
	Guard    Guard            `toml:"guard"`
	Sandbox  Sandbox          `toml:"sandbox"`
	Undo     Undo             `toml:"undo"`
	Prices   map[string]Price `toml:"prices" valid:"model"`   // by "provider/name"
	Commands map[string]Agent `toml:"commands" valid:"agent"` // by NAME, as in "command/NAME"
}

// Model is the [model] section.
type Model struct {
	Model        string   `toml:"model" valid:"model"`  // "provider/name"
	BaseURL      string   `toml:"base-url" valid:"url"` // the provider's endpoint, http or https
	Reasoning    string   `toml:"reasoning" valid:"low|medium|high"`
	Wire         string   `toml:"wire" valid:"responses|chat"`
	Tools        string   `toml:"tools" valid:"native|text"`   // how tools are called
	Context      int64    `toml:"context" valid:"positive"`    // the model's window, in tokens
	MaxOutput    int64    `toml:"max-output" valid:"positive"` // limit of one reply, in tokens
	IdleTimeout  Duration `toml:"idle-timeout"`                // longest wait for a byte from the provider
	TotalTimeout Duration `toml:"total-timeout"`               // for one attempt
	Attempts     int      `toml:"attempts" valid:"positive"`   // limit for one call, including the first
}

// Limits is the [limits] section: the budget of a run.
type Limits struct {
	Rounds    int      `toml:"rounds" valid:"positive"`
	MaxTokens int64    `toml:"max-tokens" valid:"positive"`
	MaxCost   float64  `toml:"max-cost" valid:"positive"` // in USD
	MaxTime   Duration `toml:"max-time"`
	Patience  int      `toml:"patience"`               // the run stops after this many rounds that end like an earlier one; 0 means no limit
	Keep      string   `toml:"keep" valid:"best|last"` // the tree that an unfinished run leaves
}

// Check is the [check] section.
type Check struct {
	Command string   `toml:"command"`              // a shell runs it
	Env     []string `toml:"env" valid:"variable"` // variables that the command gets although they hold keys (ruling G6)
	Timeout Duration `toml:"timeout"`
	Protect []string `toml:"protect" valid:"glob"` // existing files that need approval to change; nil protects none
	Flaky   int      `toml:"flaky"`                // limit of reruns of a check that fails
	Prove   string   `toml:"prove" valid:"off|on|strict"`
}

// Guard is the [guard] section.
type Guard struct {
	Send []string `toml:"send" valid:"glob"` // files that are sent although they look secret (ruling G8)
}

// Sandbox is the [sandbox] section: the walls. In a path, ~ is the home of the
// user; a relative path starts at the root of the project.
type Sandbox struct {
	Wall      string   `toml:"wall" valid:"auto|hidden|bwrap|landlock|firejail|none"`
	Net       bool     `toml:"net"`                        // commands may reach the network
	Write     []string `toml:"write" valid:"path"`         // more that commands may change
	Read      []string `toml:"read" valid:"path"`          // more that commands may read; inside the project, what they may only read
	Hide      []string `toml:"hide" valid:"path"`          // more that commands cannot see
	Env       []string `toml:"env" valid:"variable"`       // variables that are passed on, even if they hold keys (ruling G6)
	Memory    Size     `toml:"memory" valid:"positive"`    // limit of one command
	Processes int      `toml:"processes" valid:"positive"` // limit of one command, at the same time
}

// Undo is the [undo] section: what hone keeps so that a run can be undone.
type Undo struct {
	Include []string `toml:"include" valid:"glob"` // files that git ignores and hone keeps; nil means none
	MaxFile Size     `toml:"max-file"`             // contents of larger files are not kept; 0 means no limit
}

// Price is one [prices."provider/name"] section, in USD per million tokens.
// Without cache-read or cache-write, cached tokens cost as much as Input.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache-read"`
	CacheWrite float64 `toml:"cache-write"`
}
