package config

// Loops are sections like those that hone's loops declare in their packages.
type Loops struct {
	Reconcile Reconcile
	Implement Implement
	Task      Task
	Phase     Phase
}

// Sections returns the sections for [Load].
func (l *Loops) Sections() map[string]any {
	return map[string]any{"reconcile": &l.Reconcile, "implement": &l.Implement, "task": &l.Task, "phase": &l.Phase}
}

// Reconcile is the [reconcile] section.
type Reconcile struct {
	Rounds  int    `toml:"rounds" valid:"positive"`
	Approve string `toml:"approve" valid:"ask|none|all"` // ruling G2
}

// Implement is the [implement] section.
type Implement struct {
	Rounds       int      `toml:"rounds" valid:"positive"`
	MaxOutput    int      `toml:"max-output" valid:"positive"` // bytes of the build's output that are sent to the model (ruling C11)
	BuildTimeout Duration `toml:"build-timeout"`
}

// Task is the [task] section.
type Task struct {
	Conversing
	ReviewerModel string `toml:"reviewer-model" valid:"model"` // empty means the model of the executor
}

// Conversing is a part of sections.
type Conversing struct {
	Rounds       int    `toml:"rounds" valid:"positive"`
	Turns        int    `toml:"turns" valid:"positive"`          // limit of model calls in one execution session
	MaxToolCalls int    `toml:"max-tool-calls" valid:"positive"` // limit of tool calls in one session
	Approve      string `toml:"approve" valid:"ask|none|all"`    // ruling G2
}

// Phase is the [phase] section: a builder that can write to src/ and a verifier
// that can write to tests/. The hooks are those of abl.config.sh; they and the
// server run behind walls, which HookRead, HookEnv and HookNet open (ruling A9).
type Phase struct {
	BuilderModel   string   `toml:"builder-model" valid:"line"` // "provider/name", or a name alone
	VerifierModel  string   `toml:"verifier-model" valid:"line"`
	Rounds         int      `toml:"rounds" valid:"positive"`          // limit of rounds of building and verifying
	HealthAttempts int      `toml:"health-attempts" valid:"positive"` // failed health checks that end a round (ruling A3)
	Turns          int      `toml:"turns" valid:"positive"`           // limit of model calls in one session
	MaxToolCalls   int      `toml:"max-tool-calls" valid:"positive"`  // limit of tool calls in one session
	DevURL         string   `toml:"dev-url" valid:"line"`             // of the server; see [BadDevURL]
	HookRead       []string `toml:"hook-read" valid:"path"`           // more that hooks may read; paths as in [Sandbox]
	HookEnv        []string `toml:"hook-env" valid:"variable"`        // variables that hooks get although they hold keys
	HookNet        bool     `toml:"hook-net"`                         // hooks may reach the network
	HookTimeout    Duration `toml:"hook-timeout"`                     // for one hook
}
