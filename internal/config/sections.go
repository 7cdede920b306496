package config

import "slices"

// File is the content of .config/hone.toml, without the sections of the loops.
// A field is zero if the file does not set it; the code that reads the field has
// the default.
type File struct {
	Model    Model            `toml:"model"`
	Limits   Limits           `toml:"limits" opens:"-"`
	Check    Check            `toml:"check"`
	Guard    Guard            `toml:"guard"`
	Sandbox  Sandbox          `toml:"sandbox"`
	Undo     Undo             `toml:"undo" opens:"-"`
	Notify   Notify           `toml:"notify"`
	Prices   map[string]Price `toml:"prices" valid:"model" opens:"costs are counted at this price"`                   // by "provider/name"
	Commands map[string]Agent `toml:"commands" valid:"agent" opens:"this program takes the place of a model, as you"` // by NAME, as in "command/NAME"

	// Opens are the settings that need the user's trust, in the order of the file.
	Opens []Setting `toml:"-"`
}

// Variables returns the names of the user's variables that the file gives to commands,
// the check and agents. The sections of loops are not part of it.
func (f File) Variables() []string {
	names := slices.Concat(f.Check.Env, f.Sandbox.Env)
	for _, a := range f.Commands {
		names = append(names, a.Env...)
	}
	return names
}

// Model is the [model] section.
type Model struct {
	Model         string   `toml:"model" valid:"models" opens:"your files are sent to this model, at your cost"`            // "provider/name", with its fallbacks after commas
	Escalate      string   `toml:"escalate" valid:"model" opens:"your files are sent to this model, at your cost"`          // "provider/name"
	EscalateAfter int      `toml:"escalate-after" valid:"positive" opens:"-"`                                               // rounds in a row without fewer findings
	BaseURL       string   `toml:"base-url" valid:"url" opens:"your files and the provider's key are sent to this address"` // the provider's endpoint, http or https
	Reasoning     string   `toml:"reasoning" valid:"low|medium|high" opens:"-"`
	Wire          string   `toml:"wire" valid:"responses|chat" opens:"-"`
	Tools         string   `toml:"tools" valid:"native|text" opens:"-"`   // how tools are called
	Context       int64    `toml:"context" valid:"positive" opens:"-"`    // the model's window, in tokens
	MaxOutput     int64    `toml:"max-output" valid:"positive" opens:"-"` // limit of one reply, in tokens
	IdleTimeout   Duration `toml:"idle-timeout" opens:"-"`                // longest wait for a byte from the provider
	TotalTimeout  Duration `toml:"total-timeout" opens:"-"`               // for one attempt
	Attempts      int      `toml:"attempts" valid:"positive" opens:"-"`   // limit for one call, including the first; 0: see hone.Retry
	Advice        string   `toml:"advice" valid:"auto|none" opens:"-"`    // whether the model gets the repository's AGENTS.md
}

// Limits is the [limits] section: the budget of a run.
type Limits struct {
	Rounds     int      `toml:"rounds" valid:"positive"`
	MaxTokens  int64    `toml:"max-tokens" valid:"positive"`
	MaxCost    float64  `toml:"max-cost" valid:"positive"` // in USD
	MaxTime    Duration `toml:"max-time"`
	Patience   int      `toml:"patience" valid:"positive"`   // the run stops after this many rounds that end like an earlier one, or change nothing
	Unreadable int      `toml:"unreadable" valid:"positive"` // the run stops after this many replies in a row that cannot be used
	Keep       string   `toml:"keep" valid:"best|last"`      // the tree that an unfinished run leaves
	MinFree    *Size    `toml:"min-free"`                    // free space in bytes below which the run stops; nil means the default, 0 none
}

// Check is the [check] section.
type Check struct {
	Command string   `toml:"command" opens:"program"`                                                             // a shell runs it
	Env     []string `toml:"env" valid:"variable" opens:"the check gets these variables, even if they hold keys"` // variables that the command gets although they hold keys (ruling G6)
	Timeout Duration `toml:"timeout" opens:"-"`
	Format  string   `toml:"format" valid:"line" opens:"-"`                                                            // how the output is read: a format's name, or a pattern with %
	Report  string   `toml:"report" valid:"glob" opens:"-"`                                                            // report files that the check writes
	FailOn  string   `toml:"fail-on" valid:"exit|findings" opens:"-"`                                                  // what fails the check
	Judge   string   `toml:"judge" valid:"ask|keep|free" opens:"a model may weaken the tests that its work must pass"` // changes to what judges the work (ruling G21); empty means ask
	Protect []string `toml:"protect" valid:"glob" opens:"-"`                                                           // files that need approval to change; nil protects none
	Flaky   int      `toml:"flaky" opens:"-"`                                                                          // limit of reruns of a check that fails
	Prove   string   `toml:"prove" valid:"off|on|strict" opens:"-"`
}

// Guard is the [guard] section.
type Guard struct {
	Send  []string `toml:"send" valid:"glob" opens:"these files are sent although they look secret"`                                            // ruling G8
	Tools *bool    `toml:"tools" opens:"models change files that your own tools run, such as .vscode/tasks.json and .mcp.json, without asking"` // ruling G26; nil means true
}

// Sandbox is the [sandbox] section: the walls. In a path, ~ is the home of the
// user; a relative path starts at the root of the project.
type Sandbox struct {
	Wall      string   `toml:"wall" valid:"auto|hidden|bwrap|landlock|firejail|none" opens:"commands run behind this wall; none gives them your own rights"`
	Net       *bool    `toml:"net" opens:"commands can reach the network"` // nil means the default of the loop
	AllowGit  bool     `toml:"allow-git" opens:"commands can make git repositories whose settings and hooks your git obeys"`
	Write     []string `toml:"write" valid:"path" opens:"commands can change these paths"`
	Read      []string `toml:"read" valid:"path" opens:"commands can read these paths"`                           // more that commands may read; inside the project, what they may only read
	Hide      []string `toml:"hide" valid:"path" opens:"-"`                                                       // more that commands cannot see
	Env       []string `toml:"env" valid:"variable" opens:"commands get these variables, even if they hold keys"` // variables that are passed on, even if they hold keys (ruling G6)
	Memory    Size     `toml:"memory" valid:"positive" opens:"-"`                                                 // limit of one command
	Processes int      `toml:"processes" valid:"positive" opens:"-"`                                              // limit of one command, at the same time
}

// Undo is the [undo] section: what hone keeps so that a run can be undone.
type Undo struct {
	Include []string `toml:"include" valid:"glob"` // files that git ignores and hone keeps; nil means none
	MaxFile *Size    `toml:"max-file"`             // contents of larger files are not stored; nil means the default, 0 no limit
}

// Notify is the [notify] section.
type Notify struct {
	Command string `toml:"command" opens:"this command runs when a question waits and when a run ends, with your rights"` // a shell runs it
}

// Price is one [prices."provider/name"] section, in USD per million tokens.
// Without cache-read or cache-write, cached tokens cost as much as Input.
type Price struct {
	Input      float64 `toml:"input"`
	Output     float64 `toml:"output"`
	CacheRead  float64 `toml:"cache-read"`
	CacheWrite float64 `toml:"cache-write"`
}
