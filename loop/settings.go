package loop

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"hone"
	"hone/check/judge"
	"hone/internal/config"
	"hone/internal/render"
	"hone/model"
	"hone/sandbox"
	"hone/tool/allow"
	"hone/workspace"
)

// FileFlags returns the names of the flags that are allowed in a file of another user, such
// as a file of cases or jobs. The others weaken a wall, or send files elsewhere.
func FileFlags() (names []string) {
	for _, r := range config.Table() {
		if r.Lend {
			names = append(names, r.FlagName())
		}
	}
	return names
}

// LimitsOf returns the limits that settings set.
func LimitsOf(v config.Values) hone.Limits {
	return hone.Limits{Rounds: config.Rounds.In(v), Patience: config.Patience.In(v), Unreadable: config.Unreadable.In(v), Lines: config.MaxDiff.In(v),
		Tokens: config.MaxTokens.In(v), Cost: config.MaxCost.In(v), Time: config.MaxTime.In(v)}
}

// RaiseLimits returns the limits of a run, raised to those that were given. A lower limit is
// a usage error, with a hint to resume the run named ref; that may be followed by -C.
func RaiseLimits(l hone.Limits, v config.Values, ref string) (hone.Limits, error) {
	raised := l
	if err := cmp.Or(raise(config.Rounds, &raised.Rounds, v, ref), raise(config.Patience, &raised.Patience, v, ref), raise(config.Unreadable, &raised.Unreadable, v, ref),
		raise(config.MaxDiff, &raised.Lines, v, ref), raise(config.MaxTokens, &raised.Tokens, v, ref), raise(config.MaxCost, &raised.Cost, v, ref), raise(config.MaxTime, &raised.Time, v, ref)); err != nil {
		return l, err
	}
	return raised, nil
}

func raise[T int | int64 | float64 | time.Duration](s config.Setting[T], at *T, v config.Values, ref string) error {
	text := func(limit any) string {
		if d, ok := limit.(time.Duration); ok {
			return render.Duration(d)
		}
		return fmt.Sprint(limit)
	}
	wanted := s.Given(v)
	switch {
	case wanted == 0:
		return nil
	case *at == 0:
		return Usage(fmt.Sprintf("the run has no limit for --%s, and resume cannot add one", s.FlagName()), "hone resume "+ref)
	case wanted < *at:
		return Usage(fmt.Sprintf("--%s %s is below the run's limit of %s", s.FlagName(), text(wanted), text(*at)),
			fmt.Sprintf("hone resume %s --%s %s", ref, s.FlagName(), text(*at*2)))
	}
	*at = wanted
	return nil
}

// Settings are the settings that all loops have. They are recorded in the start event
// together with the loop's own. A Loop embeds them.
type Settings struct {
	// Values are the settings that are recorded as they were given. What was made of the
	// others is below.
	config.Values `json:"values"`

	Model      Model        `json:"model"`
	Walls      WallSettings `json:"walls,omitzero"`
	RepoAdvice Advice       `json:"repo_advice,omitzero"`
	Check      string       `json:"check,omitempty"` // a command line; empty if there is none
	Task       string       `json:"task,omitempty"`  // the command's argument, with which the task can be given to another run
	About      string       `json:"about,omitempty"` // tells the run from others in a list; see [Settings.Subject]
	// GitFiles are the paths in the tree that git's settings name, such as those of hooks.
	// They are immutable, like .git.
	GitFiles []string `json:"git_files,omitempty"`
}

// Shared returns the settings themselves.
func (s *Settings) Shared() *Settings { return s }

// Judges returns a function that reports whether a file judges the work of a run in a directory that found some files: the
// user has named it, or it does so with the commands of check and metric (ruling G21).
func (s Settings) Judges(dir string, found workspace.Manifest) func(path string) bool {
	protected, judging := judge.Named(config.Protect.In(s.Values)).In(dir, found), judge.Set{}
	lines := strings.TrimSpace(strings.Join([]string{s.Check, config.Metric.In(s.Values), config.Confirm.In(s.Values)}, "\n"))
	if lines != "" {
		judging = judge.Of(lines).In(dir, found)
	}
	return func(path string) bool { return protected.Has(path) || judging.Has(path) }
}

// Resolve sets the shared settings.
func (s *Settings) Resolve(_ context.Context, in *Input) (err error) {
	*s, err = in.Settings()
	return err
}

// Models returns the settings' model.
func (s *Settings) Models() []RoleModel { return []RoleModel{{Model: &s.Model}} }

// Variables returns the names of the user's variables that the settings give to
// commands, hooks and the check, even if they contain keys; those of agents are in the models.
func (s *Settings) Variables() []string {
	return slices.Concat(s.Walls.Env, config.CheckEnv.In(s.Values), config.HookEnv.In(s.Values))
}

// Subject returns the words that tell a run from others in a list.
func (s *Settings) Subject() string { return cmp.Or(s.About, s.Task, s.Check) }

// Own returns nil: the loop writes no files for the user.
func (s *Settings) Own(string) func(string) bool { return nil }

// Model is one of a run's models, and how to reach it.
type Model struct {
	Name      string          `json:"name"`               // provider/name
	BaseURL   string          `json:"base_url,omitempty"` // as [config.MaskAddress] shows it
	Login     bool            `json:"login,omitempty"`    // something in BaseURL is masked
	Wire      string          `json:"wire,omitempty"`
	Tools     string          `json:"tools,omitempty"` // "text" if calls are parsed from the replies' text
	Reasoning model.Reasoning `json:"reasoning,omitempty"`
	Context   int64           `json:"context,omitempty"` // tokens; 0 if it is not known
	MaxOutput int64           `json:"max_output"`        // tokens
	Idle      time.Duration   `json:"idle_ns,omitempty"`
	Total     time.Duration   `json:"total_ns,omitempty"`
	Attempts  int             `json:"attempts,omitempty"` // 0 means the engine's defaults
	Price     *hone.Price     `json:"price,omitempty"`    // nil if it is not known
	// Fallbacks take the model's place, in this order; nil if there are none. They have
	// none themselves.
	Fallbacks []Model `json:"fallbacks,omitempty"`
	// Escalation is asked instead after EscalateAfter rounds in a row without fewer
	// findings; 0 means the engine's default. Nil never is.
	Escalation    *Model `json:"escalation,omitempty"`
	EscalateAfter int    `json:"escalate_after,omitempty"`
	Agent         *Agent `json:"agent,omitempty"` // nil if the model is not a command-line agent

	// PriceSource is the page that Price is from; empty if it is from the configuration.
	PriceSource string `json:"price_source,omitempty"`

	// KeyCommand prints the key; empty means that the environment has it.
	KeyCommand string `json:"key_command,omitempty"`

	address string // BaseURL with its secrets; never recorded
}

// Agent is a command-line agent that plays a role.
type Agent struct {
	Name string `json:"name"`
	config.Agent
	Asked string `json:"asked,omitempty"` // the model that it uses; empty means its own default
}

// TextTools is the [Model.Tools] of a model that calls tools in the text of its replies.
const TextTools = "text"

// SetBaseURL sets the base URL. What may be a secret in it is stored separately and never
// recorded.
func (m *Model) SetBaseURL(url string) {
	masked, secrets := config.MaskAddress(url)
	m.BaseURL, m.address, m.Login = masked, url, len(secrets) > 0
}

// Address returns the base URL with its secrets; empty if there is no base URL. It returns an
// error if they are no longer known.
func (m Model) Address() (string, error) {
	if m.Login && m.address == "" {
		return "", &hone.Stop{Kind: hone.KindUsage, Why: "the run's base URL contained a password or a query, which hone does not store",
			Next: hone.Next{Verb: hone.Resume, Flags: []hone.Flag{{Name: "base-url", Value: "URL"}}}}
	}
	return m.KnownAddress(), nil
}

// KnownAddress returns the base URL with its secrets if they are known, otherwise without.
func (m Model) KnownAddress() string { return cmp.Or(m.address, m.BaseURL) }

// Provider returns the provider's part of PROVIDER/NAME.
func (m Model) Provider() string {
	p, _, _ := strings.Cut(m.Name, "/")
	return p
}

// PricedAs returns the name of the model that is paid for. For an agent it is the
// model that the agent uses.
func (m Model) PricedAs() string {
	if m.Agent == nil || m.Agent.Wire == "" {
		return m.Name
	}
	return m.Agent.Wire + "/" + m.Agent.Asked
}

// All returns the model itself, its fallbacks, and the one that it escalates to. They
// point into the settings.
func (m *Model) All() []*Model {
	all := m.chain()
	if m.Escalation != nil {
		all = append(all, m.Escalation)
	}
	return all
}

func (m *Model) chain() []*Model {
	chain := []*Model{m}
	for i := range m.Fallbacks {
		chain = append(chain, &m.Fallbacks[i])
	}
	return chain
}

// AllModels returns all models that a loop may ask.
func AllModels(l Loop) []*Model {
	var all []*Model
	for _, asked := range l.Models() {
		all = append(all, asked.Model.All()...)
	}
	return all
}

// Names returns the names of the model and of its fallbacks, separated by commas, as the
// user gives them.
func (m Model) Names() string {
	var names []string
	for _, one := range m.chain() {
		names = append(names, one.Name)
	}
	return strings.Join(names, ",")
}

// Role returns a role for the engine, without its models; see [Session.SetModel]. Its
// context is the smallest of all its models, so that each can take a conversation over.
func (m Model) Role(name, system string) hone.Role {
	role := hone.Role{Name: name, Called: m.Name, System: system, Reasoning: m.Reasoning,
		MaxOutput: m.MaxOutput, Context: m.Context, Price: m.Price, Agent: m.Agent != nil, TextCalls: m.Tools == TextTools}
	for _, f := range m.Fallbacks {
		role.Fallbacks = append(role.Fallbacks, f.Candidate())
	}
	if m.Escalation != nil {
		up := m.Escalation.Candidate()
		role.Escalation, role.EscalateAfter = &up, m.EscalateAfter
	}
	for _, other := range m.All() {
		if role.Context == 0 || other.Context > 0 && other.Context < role.Context {
			role.Context = other.Context
		}
	}
	return role
}

// Candidate returns the model with its limit and price; its Model is not set.
func (m Model) Candidate() hone.Candidate {
	return hone.Candidate{Called: m.Name, MaxOutput: m.MaxOutput, Price: m.Price}
}

// ExposureWarning warns about an agent that has keys or the network; empty for other models.
func (m Model) ExposureWarning() string {
	switch {
	case m.Agent == nil:
	case len(m.Agent.Env) > 0 && m.Agent.Net:
		return fmt.Sprintf("%s has %s and the network: every program it runs can read and send it", m.Name, strings.Join(m.Agent.Env, ", "))
	case len(m.Agent.Env) > 0:
		return fmt.Sprintf("%s has %s: every program it runs can read it", m.Name, strings.Join(m.Agent.Env, ", "))
	case m.Agent.Net:
		return m.Name + " can reach the network, and so can every program it runs"
	}
	return ""
}

// WallSettings are the policy of a run's commands, as far as the settings say it, and what else they
// say of walls. The zero value means no walls, as [sandbox.NoWall] does.
type WallSettings struct {
	sandbox.Policy
	// Absent means that this system has no walls, and that the settings do not name one.
	// Then checks and builds run without walls, and models cannot run commands (ruling
	// G20).
	Absent   bool     `json:"absent,omitempty"`
	AllowGit bool     `json:"allow_git,omitempty"` // commands may make repositories with settings and hooks (ruling G5)
	Env      []string `json:"env,omitempty"`       // names of the user's variables that commands get; the policy's Env is made from them
}

// None reports whether commands run with the user's own rights.
func (s WallSettings) None() bool {
	return s.Absent || s.Wall == "" || s.Wall == sandbox.NoWall
}

// systemText has what is added to the system texts of loops. The repository's advice is not the user's: whoever can change
// the file must not gain more than a say in how the code is written.
//
//go:embed system.md
var systemText string

var system = Template(systemText, nil)

// System returns the system text of a role that has a session's tools. It tells the
// model if there is no bash among them.
func (s WallSettings) System(text string) string {
	if !s.Absent {
		return text
	}
	return text + system("no bash", nil)
}

// Named reports whether the settings name a wall, instead of leaving the choice to
// hone.
func (s WallSettings) Named() bool { return !s.None() && s.Wall != sandbox.Auto }

// Provable returns an error if a check is to be proved, but there is none.
func (s *Settings) Provable(check bool) error {
	if s.Prove() == "" || check {
		return nil
	}
	return Usage("--prove needs a check", `--check "make test"`)
}

// Comparable returns an error if only what is new counts, but no check says what that is.
func (s *Settings) Comparable(check bool) error {
	switch {
	case !config.OnlyNew.In(s.Values):
		return nil
	case !check:
		return Usage("--only-new needs a check", `--check "make lint"`)
	case s.Prove() == "strict":
		return Usage("--only-new and --prove=strict contradict each other: at the start nothing is new, so the check cannot be seen to fail", "leave out one of them")
	}
	return nil
}

// Prove returns how a check is proved: "on" or "strict"; empty if it is not.
func (s *Settings) Prove() string {
	if how := config.Prove.In(s.Values); how != "off" {
		return how
	}
	return ""
}

// SetJudge sets what judges the work of a run whose check is a command; none if it is
// empty.
func (s *Settings) SetJudge(r *hone.Run, command string) {
	if how := config.Judge.In(s.Values); command != "" && how != "free" {
		r.Trust.Judges, r.Trust.Keep = judge.Of(command), how == "keep"
	}
}

// Bounds returns the bounds of a session.
func (s *Settings) Bounds() hone.Bounds {
	return hone.Bounds{Turns: config.Turns.In(s.Values), Calls: config.MaxToolCalls.In(s.Values)}
}

// Programs returns the programs that a model may run: the standard ones and those of the settings.
func (s *Settings) Programs() []string {
	return slices.Concat(allow.ExecutionPrograms(), config.Allow.In(s.Values))
}

// Repeat returns the arguments of a command line that starts a new run of the same task in the same tree: flags, and then
// "--" and the task if there is one. Model, check, walls and limits are not among them.
func (s *Settings) Repeat() []string { return append(s.Values.Repeat(), OneArg(s.Task)...) }

// Usage returns an error about a command line, a configuration or a directory that is
// found before anything is sent or written. hint says what to type next.
func Usage(why, hint string) error {
	return &hone.UsageError{Why: why, Next: hone.Next{First: hint}}
}

// UsageOf is [Usage] for an error, unless it may pass (ruling G22): then the command fails.
func UsageOf(err error, hint string) error {
	return &hone.UsageError{Why: err.Error(), Next: hone.Next{First: hint}, Err: err}
}

// Usagef is [Usage] about a flag. Its hint is the help of the command.
func (in *Input) Usagef(format string, args ...any) error {
	return Usage(fmt.Sprintf(format, args...), "hone help "+in.Kind.Name)
}

// MaxAdvice is the maximum size of the advice that a model gets, in bytes.
const MaxAdvice = 16 << 10

// Advice is what a file of the repository, such as AGENTS.md, tells agents that work
// there. A run reads it once, before it starts, and records it with its settings: a
// resumed or replayed run sends the same text, whatever the file contains by then, and
// the system texts stay the same. The zero value is no advice.
type Advice struct {
	// Off means that no file is read: the loop takes no advice, or the configuration says
	// so.
	Off  bool   `json:"off,omitempty"`
	File string `json:"file,omitempty"`  // its name, at the root; empty if there is no advice
	Size int    `json:"bytes,omitempty"` // of the file
	Text string `json:"text,omitempty"`  // its contents without secrets, at most MaxAdvice bytes
	Cut  bool   `json:"cut,omitempty"`   // Text lacks the end of the file
}

// String returns the advice's file and size for the user.
func (a Advice) String() string {
	text := fmt.Sprintf("advice from %s (%s)", a.File, render.Bytes(int64(a.Size)))
	if a.Cut {
		text += fmt.Sprintf("; only the first %s are sent", render.Bytes(int64(len(a.Text))))
	}
	return text
}

// WithAdvice returns a system text with the limits of what may change and the repository's
// advice after it. Every line of the file is quoted, so that none of them can look like the end
// of the advice.
func (s *Settings) WithAdvice(text string) string {
	a, limits, quoted := s.RepoAdvice, s.Scopes(), ""
	if a.File == "" && limits == nil {
		return text
	}
	for line := range strings.Lines(strings.TrimRight(a.Text, "\n") + "\n") {
		quoted += strings.TrimRight("> "+line, " \n") + "\n"
	}
	return strings.TrimRight(text, "\n") + system("added", map[string]any{"Limits": limits, "Advice": a, "Quoted": quoted})
}

// Scopes says which files a run may change, and how many lines; nil if that is not limited.
func (s *Settings) Scopes() (texts []string) {
	if only := config.Only.In(s.Values); len(only) > 0 {
		texts = append(texts, "only files that match "+render.Line(strings.Join(only, ", "))+" may be changed")
	}
	if n := config.MaxDiff.In(s.Values); n > 0 {
		texts = append(texts, fmt.Sprintf("at most %s may be changed in all, added and removed ones together", render.Count(n, "line")))
	}
	return texts
}
