package config

import "time"

// The loops, in the order in which their sections are shown.
const loopNames = "fix reconcile implement task phase improve"

// chats are the loops that embed loop.Chat, and task, whose executor works as they do.
const chats = "fix task improve"

// What settings of several rows open, and the mark of a row that needs no trust.
const (
	safe = "-"
	sent = "your files are sent to this model, at your cost"
)

// The walls, and the texts about them.
const (
	walls    = "auto|hidden|bwrap|landlock|firejail|none"
	wallList = ": auto, hidden, bwrap, landlock, firejail or none"
)

// The table. A row is the default and what the columns of [Row] say.
var (
	// [model]
	Model = row("", Row{Key: "model.model", Flag: "model,m", Env: "HONE_MODEL", Also: "prompt doctor", Valid: "models", Opens: sent, Apart: true, Example: `"openai/qwen3-coder"`,
		Help: "the model, as `PROVIDER/NAME`; A,B lets B take over if A fails", Unset: "see hone help models",
		In: In{"fix": {Help: "the model, as `PROVIDER/NAME`; A,B lets B take over if A fails; command/NAME for a command-line agent"},
			"task":      {Help: "the model, as `PROVIDER/NAME`; A,B lets B take over if A fails; also CodeScribe's openai-NAME, anthropic-NAME, oaic-NAME; command/NAME for a command-line agent as the executor"},
			"phase":     {Help: "the model of both roles, as `PROVIDER/NAME`"},
			"implement": {Default: "gemini/gemini-2.5-pro"}, "doctor": {Help: "the model whose provider is checked, as `PROVIDER/NAME`, or several with commas between them"}, "prompt": {Help: "the model to compare the size with, as `PROVIDER/NAME`"}}})
	Escalate = row("", Row{Key: "model.escalate", Valid: "model", Opens: sent, Apart: true, Example: `"anthropic/claude-opus-4-8"`,
		Help: "the model for a round after some without fewer findings"})
	EscalateAfter = row(2, Row{Key: "model.escalate-after", Valid: "positive", Opens: safe, Apart: true, Help: "how many such rounds in a row"})
	BaseURL       = row("", Row{Key: "model.base-url", Flag: "base-url", Also: "resume doctor", Valid: "url", Opens: "your files and the provider's key are sent to this address", Late: true, Apart: true,
		Example: `"http://127.0.0.1:8080/v1"`, Help: "the `URL` of the provider, such as http://127.0.0.1:8080/v1", Unset: "the provider's own",
		In: In{"resume": {Help: "the `URL` of the provider, if it has changed"}}})
	KeyCommand = row("", Row{Key: "model.key-command", Opens: "this command runs as you, outside of the walls, and prints the key of the provider", Late: true, Apart: true,
		Example: `"gcloud auth print-access-token"`, Help: "a shell command that prints the key of the provider that model names; it runs again when the server refuses the key", Unset: "the provider's variable"})
	Reasoning = row("", Row{Key: "model.reasoning", Flag: "reasoning", Valid: "low|medium|high", Opens: safe, Apart: true, Lend: true, Example: `"high"`,
		Help: "low, medium or high, if the provider supports it", Unset: "the provider's"})
	Wire = row("", Row{Key: "model.wire", Flag: "wire", Rare: true, Valid: "responses|chat", Opens: safe, Apart: true, Lend: true, Example: `"chat"`,
		Help: "for openai: responses or chat", Unset: "responses at OpenAI's own endpoint, chat elsewhere"})
	Tools = row("native", Row{Key: "model.tools", Flag: "tools", Rare: true, Loops: "task phase", Valid: "native|text", Opens: safe, Apart: true, Lend: true, Example: `"text"`,
		Help: "how models call tools: native, or text for models without tool calls"})
	Context      = row(int64(0), Row{Key: "model.context", Valid: "positive", Opens: safe, Apart: true, Example: "131072", Help: "the model's context, in tokens", Unset: "known for many models"})
	MaxOutput    = row(int64(0), Row{Key: "model.max-output", Valid: "positive", Opens: safe, Apart: true, Example: "16384", Help: "maximum tokens of one reply", Unset: "the model's limit, or 16384"})
	IdleTimeout  = row(time.Duration(0), Row{Key: "model.idle-timeout", Opens: safe, Apart: true, Example: `"20m"`, Help: "stop a call when the provider is silent for this long", Unset: "20m"})
	TotalTimeout = row(time.Duration(0), Row{Key: "model.total-timeout", Opens: safe, Apart: true, Example: `"1h"`, Help: "stop one attempt at a call after this time", Unset: "1h"})
	CallAttempts = row(0, Row{Key: "model.attempts", Valid: "positive", Opens: safe, Apart: true, Example: "6", Help: "how often hone tries a call", Unset: "6 before the first reply, then no limit"})
	Advice       = row("auto", Row{Key: "model.advice", Valid: "auto|none", Opens: safe, Apart: true, Help: `whether models get AGENTS.md: auto, or none`})

	// [limits]; rounds may be in the section of a loop, too.
	Rounds = row(5, Row{Key: "limits.rounds", Own: true, Flag: "rounds", Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true, Example: "5", Help: "maximum number of rounds",
		In: In{"implement": {Default: 8},
			"task":  {Help: "maximum number of rounds, each an execution and a review; also --agent-loops, -nloop"},
			"phase": {Default: 3, Help: "maximum number of rounds of building and verifying"}, "improve": {Default: 20}}})
	MaxTokens = row(int64(5_000_000), Row{Key: "limits.max-tokens", Flag: "max-tokens", Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true,
		Help: "stop the run before it uses more than this many tokens"})
	MaxCost = row(0.0, Row{Key: "limits.max-cost", Flag: "max-cost", Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true, Example: "2.50",
		Help: "stop the run before it costs more than this, in `USD`; the prices are in hone help models", Unset: "no limit"})
	MaxTime = row(4*time.Hour, Row{Key: "limits.max-time", Flag: "max-time", Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true,
		Help: "stop the run after this much active time, such as 90m"})
	Patience = row(2, Row{Key: "limits.patience", Flag: "patience", Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true,
		Help: "stop after N rounds with the same result as an earlier round, or that change nothing",
		In:   In{"improve": {Default: 5, Help: "stop after N rounds in a row without a gain"}}})
	Unreadable = row(3, Row{Key: "limits.unreadable", Flag: "unreadable", Rare: true, Also: "resume", Valid: "positive", Opens: safe, Apart: true, Lend: true,
		Help: "stop after N replies in a row that cannot be used"})
	Keep = row("last", Row{Key: "limits.keep", Flag: "keep", Valid: "best|last", Opens: safe, Lend: true,
		Help: "which version of the files to keep when a limit is reached: last, or best, which has the fewest findings",
		In:   In{"improve": {Help: "improve keeps the best version in any case"}}})
	MaxDiff = row(0, Row{Key: "limits.max-diff", Flag: "max-diff", Also: "resume", Valid: "positive", Opens: safe, Lend: true, Example: "200",
		Help: "refuse edits with which the run would change more than N lines, added and removed ones together", Unset: "no limit"})
	MinFree = row(int64(256<<20), Row{Key: "limits.min-free", Valid: "size", Opens: safe, Example: `"256MB"`, Help: "stop the run when less disk space is free for .hone; 0: no limit"})

	// [check]
	Check = row("", Row{Key: "check.command", Flag: "check", Also: "check prompt", Opens: "program", Apart: true, Lend: true, Example: `"make test"`,
		Help: "a shell `command` that must also exit with status 0", Unset: "command in the [check] section of .config/hone.toml",
		In: In{"config": {Help: "the check: a shell command that must exit with status 0 (default: no check)"}, "fix": {Help: "the check: a shell `command` that exits with status 0 if all is well"}, "task": {Help: "a shell `command` that decides whether the task is done, by exit status 0"},
			"implement": {Help: "a shell `command` that must exit with status 0, in addition to build.sh if there is one"}, "phase": {Help: "a shell `command` that must exit with status 0 when all contracts hold"},
			"improve": {Help: "a shell `command` that must exit with status 0: a change that fails it is taken back, and not measured"},
			"check":   {Help: "a shell `command` that must exit with status 0"}, "prompt": {Help: "the run's check: a `command` that must exit with status 0"}}})
	CheckTimeout = row(time.Duration(0), Row{Key: "check.timeout", Opens: safe, Example: `"10m"`, Help: "time for one check", Unset: "10m; of a correctness checker 1h"})
	CheckFormat  = row("auto", Row{Key: "check.format", Flag: "check-format", Also: "check", Valid: "line", Opens: safe, Lend: true, Help: "how the check's output is read: the name of a `format`, or a pattern such as \"%f:%l: %m\""})
	CheckReport  = row("", Row{Key: "check.report", Valid: "glob", Opens: safe, Example: `"build/**/*.xml"`, Help: "report files that the check writes, such as JUnit's"})
	FailOn       = row("exit", Row{Key: "check.fail-on", Valid: "exit|findings", Opens: safe, Help: `what fails: a status other than 0 ("exit"), or also findings in the output ("findings")`})
	CheckEnv     = row([]string(nil), Row{Key: "check.env", Valid: "variable", Opens: "the check gets these variables, even if they hold keys", Example: `["GEMINI_API_KEY"]`, Help: "variables that the check gets even if they hold keys"})
	Judge        = row("ask", Row{Key: "check.judge", Flag: "judge", Loops: "fix task", Valid: "ask|keep|free", Opens: "a model may weaken the tests that its work must pass", Lend: true, Repeat: true,
		Help: "changes to tests and whatever else is part of the check: ask (if the check fails without them), keep (take them back), or free"})
	OnlyNew = row(false, Row{Key: "LOOP.only-new", Flag: "only-new", Group: "check", Loops: "fix task implement", Sections: "task implement", Opens: safe, Repeat: true, Example: "true",
		Help: "what the check finds before the first round does not count",
		In:   In{"fix": {Help: "what the check finds before the first round does not count, but for what --findings names"}}})
	Findings = row("", Row{Flag: "findings", Group: "check", Loops: "fix", Apart: true,
		Help: "begin with the findings in `FILE`, such as a CI log, JUnit's XML or SARIF, instead of running the check; - is standard input"})
	Protect = row([]string(nil), Row{Key: "check.protect", Valid: "glob", Opens: safe, Example: `["tests/**"]`, Help: "more files that a model may not change without approval"})
	Flaky   = row(0, Row{Key: "check.flaky", Flag: "flaky", Valid: "natural", Opens: safe, Lend: true, Example: "2", Help: "rerun a failing check up to N times; only findings that appear every time count"})
	Prove   = row("off", Row{Key: "check.prove", Flag: "prove", Loops: "fix reconcile implement task phase", Bare: "on", Valid: "on|off|strict", Opens: safe, Lend: true, Example: `"on"`,
		Help: "check the check: warn if it passes at the start (strict: stop), and require it to pass again on a clean copy: on, off or strict"})

	// [undo], [notify] and [guard]
	Include = row([]string(nil), Row{Key: "undo.include", Valid: "glob", Opens: safe, Example: `[".env.local"]`, Help: "files that git ignores, but hone undo restores"})
	MaxFile = row(int64(64<<20), Row{Key: "undo.max-file", Valid: "size", Opens: safe, Example: `"64MB"`, Help: "hone undo cannot restore larger files; 0: no limit"})
	Notify  = row("", Row{Key: "notify.command", Opens: "this command runs when a question waits and when a run ends, with your rights", Apart: true, Example: `'notify-send "hone: $HONE_TEXT"'`, Help: "a command to run when a question waits, and when a run ends"})
	Send    = row([]string(nil), Row{Key: "guard.send", Valid: "glob", Opens: "these files are sent although they look secret", Example: `["testdata/keys/**"]`, Help: "files that are sent although they look secret"})
	Only    = row([]string(nil), Row{Key: "guard.only", Flag: "only", Group: "safety", Valid: "glob", Opens: safe, Repeat: true, Example: `["src/**"]`,
		Help: "the only files that a model may change, as `globs` such as src/**", Unset: "all"})
	GuardTools = row(true, Row{Key: "guard.tools", Opens: "models change files that your own tools run, such as .vscode/tasks.json and .mcp.json, without asking",
		Help: "false: models change files that your own tools run, such as .vscode/, without asking"})

	// [sandbox]; a run records these as its walls, with absolute paths.
	Wall = row("auto", Row{Key: "sandbox.wall", Flag: "sandbox", Group: "safety", Also: "check sandbox doctor", Valid: walls, Opens: "commands run behind this wall; none gives them your own rights", Apart: true,
		Help: "`walls` for --check and for what a model runs" + wallList,
		In: In{"implement": {Help: "`walls` for build.sh and --check" + wallList}, "check": {Help: "`walls` for the check" + wallList}, "sandbox": {Help: "the `wall`" + wallList},
			"doctor":    {Help: "try to cross this `wall`; auto builds the walls that a run would get, none checks no walls"},
			"reconcile": {Help: "`walls` for --check, and for the correctness checker only if you name one here" + wallList},
			"phase":     {Help: "`walls`: auto chooses hidden or bwrap; landlock, firejail and none hide less, and are used only if you name them"}}})
	Net = row(false, Row{Key: "sandbox.net", Flag: "net", Group: "safety", Also: "check sandbox", Opens: "commands can reach the network", Apart: true, Help: "let commands behind walls reach the network",
		In: In{"implement": {Default: true, Help: "let build.sh and --check reach the network, as builds download files"}, "phase": {Help: "let the commands of builder and verifier reach the network"},
			"check": {Help: "let the check reach the network"}, "sandbox": {Help: "let the command reach the network"}}})
	AllowGit = row(false, Row{Key: "sandbox.allow-git", Flag: "allow-git", Group: "safety", Rare: true, Also: "sandbox", Opens: "commands can make git repositories whose settings and hooks your git obeys", Apart: true,
		Help: "leave git repositories that commands make, whatever their settings and hooks let git run"})
	MayWrite  = row([]string(nil), Row{Key: "sandbox.write", Valid: "path", Opens: "commands can change these paths", Apart: true, Example: `["~/.cache/pre-commit"]`, Help: "what commands may also write; must exist"})
	MayRead   = row([]string(nil), Row{Key: "sandbox.read", Valid: "path", Opens: "commands can read these paths", Apart: true, Example: `["/opt/data", "golden"]`, Help: "what commands may also read; in the project: read-only"})
	Hide      = row([]string(nil), Row{Key: "sandbox.hide", Valid: "path", Opens: safe, Apart: true, Example: `["private"]`, Help: "what commands cannot see"})
	Variables = row([]string(nil), Row{Key: "sandbox.env", Valid: "variable", Opens: "commands get these variables, even if they hold keys", Apart: true, Example: `["DATABASE_URL"]`, Help: "variables that commands get"})
	Memory    = row(int64(0), Row{Key: "sandbox.memory", Valid: "size>0", Opens: safe, Apart: true, Example: `"4GB"`, Help: "memory for one command", Unset: "no limit"})
	Processes = row(0, Row{Key: "sandbox.processes", Valid: "positive", Opens: safe, Apart: true, Example: "512", Help: "processes and threads of one command at a time", Unset: "4096"})

	// Loops whose models work in sessions, and questions.
	Turns = row(30, Row{Key: "LOOP.turns", Flag: "turns", Group: "limits", Loops: chats + " phase", Valid: "positive", Opens: safe, Lend: true, Help: "maximum number of model calls in one session",
		In: In{"phase": {Default: 60}, "task": {Help: "maximum number of model calls in one execution session; also --agent-iterations, -niter"}}})
	MaxToolCalls = row(120, Row{Key: "LOOP.max-tool-calls", Flag: "max-tool-calls", Group: "limits", Rare: true, Loops: chats + " phase", Valid: "positive", Opens: safe, Lend: true, Help: "maximum number of tool calls in one session",
		In: In{"phase": {Default: 240}}})
	Approve = row("ask", Row{Key: "LOOP.approve", Flag: "approve", Group: "safety", Loops: chats + " reconcile phase", Sections: chats + " reconcile", Valid: "ask|none|all", Opens: "changes to protected files are approved in this way",
		Help: "how to approve changes that need approval: ask, all, or none, which declines them", In: In{"implement": {Default: "none"}, "improve": {Default: "none"}}})
	Allow = row([]string(nil), Row{Flag: "allow", Group: "safety", Loops: chats, Lend: true, Repeat: true, Help: "`programs` that the model may run in addition to the standard list, such as go,make; the check itself is always allowed",
		In: In{"improve": {Help: "`programs` that the model may run in addition to the standard list, such as go,make; check and metric are always allowed"}, "task": {Help: "`programs` that the model may run in addition to the standard list and the task file's, such as go,make; the check itself is always allowed"}}})
	Attempts = row(1, Row{Flag: "attempts", Group: "limits", Loops: "fix task implement improve", Apart: true, Lend: true,
		Help: "try N times side by side, in copies of the directory, and apply the first result that passes the check; with several -m each model in turn",
		In:   In{"improve": {Help: "try N times side by side, in copies of the directory, and apply the result with the best number; with several -m each model in turn"}}})

	// [implement]
	BuildOutput  = row(65536, Row{Key: "implement.max-output", Flag: "max-output", Group: "check", Rare: true, Loops: "implement", Valid: "positive", Opens: safe, Lend: true, Help: "bytes of the build's output that are sent to the model"})
	BuildTimeout = row(10*time.Minute, Row{Key: "implement.build-timeout", Flag: "build-timeout", Group: "check", Loops: "implement", Valid: "positive", Opens: safe, Lend: true, Help: "stop the build and all its children after this time"})
	SelectAbove  = row(int64(40_000), Row{Key: "implement.select-above", Flag: "select-above", Loops: "implement", Also: "prompt", Valid: "positive", Opens: safe, Lend: true, Repeat: true, Help: "let the model choose the files to send if all have more than this many tokens"})
	Files        = row([]string(nil), Row{Flag: "files", Loops: "implement", Also: "prompt", Valid: "glob", Lend: true, Repeat: true, Help: "send these files, as `globs` such as src/**,go.mod; the others are only named"})
	NotSent      = row([]string(nil), Row{Key: "implement.not-sent", Loops: "implement", Valid: "glob", Opens: safe, Example: `["testdata/**"]`, Help: "files that models know by name only and cannot change"})
	Query        = row("", Row{Flag: "query", Loops: "implement", Also: "prompt", Apart: true, Lend: true, Help: "what you want, as `TEXT`, instead of query.txt"})
	QueryFile    = row("", Row{Flag: "query-file", Loops: "implement", Also: "prompt", Apart: true, Help: "the `FILE` with the query, instead of query.txt"})

	// [task]
	ReviewerModel = row("", Row{Key: "task.reviewer-model", Flag: "reviewer-model", Group: "model", Loops: "task", Valid: "models", Opens: sent, Apart: true, Example: `"gemini/gemini-2.5-flash"`,
		Help: "the reviewer's model, as `PROVIDER/NAME`; required if --model is a command-line agent", Unset: "the executor's"})
	LogPath = row("", Row{Flag: "log-path", Group: "output", Rare: true, Loops: "task", Valid: "file", Apart: true, Help: "log the sessions' events in this `FILE`; CodeScribe's --log alone means .codescribe/logs/toolusage.toml"})
	Reason  = row(false, Row{Flag: "reason", Group: "model", Rare: true, Loops: "task", Apart: true, Help: "the same as --reasoning high"})

	// [phase]
	BuilderModel = row("", Row{Key: "phase.builder-model", Flag: "builder-model", Group: "model", Loops: "phase", Also: "prompt", Valid: "line", Opens: sent, Apart: true, Example: `"gemini/gemini-2.5-pro"`,
		Help: "the builder's model, as `PROVIDER/NAME` or NAME, or command/NAME for a command-line agent", Unset: "gemini/gemini-2.5-pro"})
	VerifierModel = row("", Row{Key: "phase.verifier-model", Flag: "verifier-model", Group: "model", Loops: "phase", Also: "prompt", Valid: "line", Opens: sent, Apart: true, Example: `"gemini/gemini-2.5-flash"`,
		Help: "the verifier's model, as `PROVIDER/NAME` or NAME, or command/NAME", Unset: "gemini/gemini-2.5-flash"})
	HealthAttempts   = row(1, Row{Key: "phase.health-attempts", Flag: "health-attempts", Group: "check", Rare: true, Loops: "phase", Valid: "positive", Opens: safe, Help: "how often the builder may try to pass the health check in a round"})
	DevURL           = row("http://localhost:3000", Row{Key: "phase.dev-url", Flag: "dev-url", Group: "check", Rare: true, Loops: "phase", Valid: "loopback", Opens: "the server is expected at this address of your machine", Help: "the `URL` at which abl.config.sh starts the server"})
	VerifierCommands = row([]string(nil), Row{Key: "phase.verifier-commands", Loops: "phase", Valid: "variable", Opens: "a model calls these commands of abl.config.sh", Example: `["verifier_db_query"]`,
		Help: "commands of abl.config.sh that the verifier may call, such as a query of the database; they see nothing of src/"})
	HookRead    = row([]string(nil), Row{Key: "phase.hook-read", Loops: "phase", Valid: "path", Opens: "hooks can read these paths", Apart: true, Example: `["~/.npmrc"]`, Help: "what hooks may also read"})
	HookEnv     = row([]string(nil), Row{Key: "phase.hook-env", Loops: "phase", Valid: "variable", Opens: "hooks get these variables, even if they hold keys", Example: `["DATABASE_URL"]`, Help: "variables that hooks get"})
	HookNet     = row(false, Row{Key: "phase.hook-net", Loops: "phase", Opens: "hooks can reach the network", Example: "true", Help: "hooks can reach the network"})
	HookTimeout = row(10*time.Minute, Row{Key: "phase.hook-timeout", Loops: "phase", Opens: safe, Help: "limit for one hook, and for one run of the suite"})
	List        = row(false, Row{Flag: "list", Loops: "phase", Apart: true, Help: "only list contracts and flows, and warnings about the specifications"})

	// [improve]
	Metric = row("", Row{Key: "improve.metric", Flag: "metric", Group: "check", Loops: "improve", Also: "prompt", Opens: "program", Lend: true, Repeat: true, Example: `"./bench.sh"`,
		Help: "a shell `command` that prints the number, as METRIC name=number, a Go benchmark or a number alone"})
	Lower   = row("", Row{Key: "improve.lower", Flag: "lower", Group: "check", Loops: "improve", Also: "prompt", Valid: "line", Opens: safe, Lend: true, Repeat: true, Example: `"p95_ms"`, Help: "the `NAME` of the number, which is better the lower it is"})
	Higher  = row("", Row{Key: "improve.higher", Flag: "higher", Group: "check", Loops: "improve", Also: "prompt", Valid: "line", Opens: safe, Lend: true, Repeat: true, Example: `"accuracy"`, Help: "the `NAME` of the number, which is better the higher it is"})
	Target  = row("", Row{Key: "improve.target", Flag: "target", Group: "limits", Loops: "improve", Valid: "number", Opens: safe, Lend: true, Repeat: true, Example: `"100"`, Help: "stop when the number is as good as `X`", Unset: "as good as possible"})
	Confirm = row("", Row{Key: "improve.confirm", Flag: "confirm", Group: "check", Loops: "improve", Opens: "program", Lend: true, Repeat: true, Example: `"./bench.sh held-out"`,
		Help: "a second `command` that prints the number, which a change must not worsen; the model sees neither its output nor the scripts that it starts"})
	Profile = row("", Row{Key: "improve.profile", Flag: "profile", Group: "model", Loops: "improve", Opens: "program", Lend: true, Repeat: true, Example: `"./profile.sh"`,
		Help: "a `command` that prints where the time goes, for the model: at the start and after each gain"})
	Samples       = row(0, Row{Key: "improve.samples", Flag: "samples", Group: "check", Rare: true, Loops: "improve", Valid: "positive", Opens: safe, Lend: true, Repeat: true, Example: "15", Help: "how often a measurement runs the metric, at least 5", Unset: "10; 2 if the number is always the same"})
	MinGain       = row("1%", Row{Key: "improve.min-gain", Flag: "min-gain", Group: "check", Rare: true, Loops: "improve", Valid: "percent", Opens: safe, Lend: true, Repeat: true, Help: "a gain below this `PERCENT` is none"})
	MetricTimeout = row(10*time.Minute, Row{Key: "improve.timeout", Loops: "improve", Opens: safe, Help: "time for one run of the metric"})
)
