package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"hone/internal/lazyregexp"
)

// Row is a setting: what users can write, where, and what is said about it.
type Row struct {
	Name    string // in [Values] and in the record of a run; row derives it from Key or Flag
	Key     string // "section.key" of the file; the section LOOP stands for that of each loop; empty means that there is only a flag
	Own     bool   // the section of a loop may have the key, too; it has precedence there
	Flag    string // its name, or "name,n" with a letter; empty means that there is only a key
	Group   string // of flags in the help; empty means the section of the key, or the first one
	Rare    bool   // the help shows the flag only if all are asked for
	Bare    string // what the flag means without a value; empty means that it needs one
	Env     string // a variable that has precedence over the file; empty means none
	Loops   string // that have the flag, and the key of a section LOOP; empty means all
	Also    string // other commands that have the flag; "prompt" is that of the same loops
	Valid   string // a rule; see [Load]
	Opens   string // what it permits, for the question of trust; safe means that it needs none
	Late    bool   // the value of the file is not among those of a loop: who uses it decides whether it counts
	Apart   bool   // not recorded by its name: a run records what was made of it, or does not need it again
	Lend    bool   // the flag may stand in a file of another user, such as cases or jobs: it opens nothing
	Repeat  bool   // the flag belongs to the task, so that a repetition of the run has it
	Help    string // for the flag and the key
	Unset   string // what holds without a value, if the default does not say so
	Example string // as TOML; empty means the default

	Sections string // that have the key of a section LOOP, if not those of Loops
	In       In     // what is different in some loops and commands
	standard any
}

// In says how a row differs in loops or commands.
type In map[string]struct {
	Default any    // nil means that of the row
	Help    string // empty means that of the row
}

// Setting is a row whose value has the type T: string, bool, int, int64, float64,
// time.Duration or []string.
type Setting[T any] struct{ *Row }

var table []*Row

// Table returns all rows.
func Table() []*Row { return table }

func row[T any](standard T, r Row) Setting[T] {
	r.standard = standard
	if r.Name = strings.TrimPrefix(r.Key, "LOOP."); r.Key == "" {
		r.Name = r.FlagName()
	}
	table = append(table, &r)
	return Setting[T]{&r}
}

// Values are values of settings, by the names of their rows: those that were given in one
// place, or those of all.
type Values map[string]any

// In returns a setting's value; the default of most loops if there is none.
func (s Setting[T]) In(v Values) T {
	if _, ok := v[s.Name]; !ok {
		return s.standard.(T)
	}
	return s.Given(v)
}

// Given returns a setting's value; the zero value if there is none.
func (s Setting[T]) Given(v Values) (value T) {
	switch got := v[s.Name].(type) {
	case nil:
	case T:
		return got
	default: // it was recorded
		text, err := json.Marshal(got)
		if err == nil {
			_ = json.Unmarshal(text, &value) // another type is no value
		}
	}
	return value
}

// Set sets a setting's value.
func (s Setting[T]) Set(v Values, value T) { v[s.Name] = value }

// Before sets a value, unless a flag gave another one. An empty text is none.
func (s Setting[T]) Before(v, flags Values, value T) {
	if _, ok := flags[s.Name]; !ok && !isZero(value) {
		v[s.Name] = value
	}
}

// For returns the values of all settings in a loop: of the flags, or else of the
// environment, the file or the defaults. A nil getenv has no variables.
func (f File) For(loop string, getenv func(string) string, flags Values) Values {
	v := Values{}
	for _, r := range table {
		v[r.Name] = r.defaultIn(loop)
		for _, key := range r.keys(loop) {
			if value, ok := f.keys[key]; ok && !r.Late {
				v[r.Name] = value
			}
		}
		if r.Env != "" && getenv != nil {
			if value := getenv(r.Env); strings.TrimSpace(value) != "" {
				v[r.Name] = value
			}
		}
	}
	maps.Copy(v, flags)
	return v
}

// Without returns the file without the value of a setting.
func (f File) Without(r *Row) File {
	f.keys = maps.Clone(f.keys)
	delete(f.keys, r.Key)
	return f
}

// Late returns the file's value of a setting that is Late.
func (f File) Late(s Setting[string]) string {
	value, _ := f.keys[s.Key].(string)
	return value
}

// Shared returns the values of the settings that do not depend on a loop.
func (f File) Shared() Values { return f.For("", nil, nil) }

// Recorded returns the values that a run of a loop records by their names.
func (v Values) Recorded(loop string) Values {
	recorded := Values{}
	for _, r := range table {
		if value := v[r.Name]; !r.Apart && (r.has(loop) || len(r.keys(loop)) > 0) && !(isZero(value) && isZero(r.standard)) {
			recorded[r.Name] = value
		}
	}
	return recorded
}

// Repeat returns the flags that repeat the task of a run with these values.
func (v Values) Repeat() (args []string) {
	for _, r := range table {
		value, ok := v[r.Name]
		if r.isList() {
			value = strings.Join(Setting[[]string]{r}.Given(v), ",")
			ok = value != ""
		}
		text := fmt.Sprint(value)
		switch {
		case !r.Repeat || !ok || text == fmt.Sprint(r.standard):
		case text == "true": // a flag without a value
			args = append(args, "--"+r.FlagName())
		default:
			args = append(args, "--"+r.FlagName(), text)
		}
	}
	return args
}

func (r *Row) isList() bool {
	_, ok := r.standard.([]string)
	return ok
}

func isZero(value any) bool { return value == nil || reflect.ValueOf(value).IsZero() }

// FlagName returns the name of the flag; empty if there is none.
func (r *Row) FlagName() string {
	long, _, _ := strings.Cut(r.Flag, ",")
	return long
}

func (r *Row) has(loop string) bool { return r.Loops == "" || hasWord(r.Loops, loop) }

func hasWord(words, word string) bool { return slices.Contains(strings.Fields(words), word) }

// The last one counts most.
func (r *Row) keys(loop string) (keys []string) {
	section, key, _ := strings.Cut(r.Key, ".")
	if section == "LOOP" {
		if loops := r.Sections; hasWord(loops, loop) || loops == "" && r.has(loop) {
			return []string{loop + "." + key}
		}
		return nil
	}
	if r.Key != "" && (section == loop || !hasWord(loopNames, section)) {
		keys = append(keys, r.Key)
	}
	if r.Own && r.has(loop) {
		keys = append(keys, loop+"."+key)
	}
	return keys
}

func (r *Row) defaultIn(loop string) any {
	if other := r.In[loop].Default; other != nil {
		return other
	}
	return r.standard
}

// AddFlags adds the flags of a command to fs. What is given goes to v. A command of a loop
// beside the loop itself, such as prompt, has only the rows that name it.
func AddFlags(fs *pflag.FlagSet, v Values, loop, command string) {
	for _, r := range table {
		if r.Flag == "" || command != loop && !hasWord(r.Also, command) || loop != "" && !r.has(loop) {
			continue
		}
		long, short, _ := strings.Cut(r.Flag, ",")
		var p any
		switch r.standard.(type) {
		case string:
			p = fs.StringP(long, short, "", "")
		case bool:
			p = fs.BoolP(long, short, false, "")
		case int:
			p = fs.IntP(long, short, 0, "")
		case int64:
			p = fs.Int64P(long, short, 0, "")
		case float64:
			p = fs.Float64P(long, short, 0, "")
		case time.Duration:
			p = fs.DurationP(long, short, 0, "")
		case []string:
			p = fs.StringSliceP(long, short, nil, "")
		}
		f := fs.Lookup(long)
		if r.isList() {
			f.Value = list{f.Value}
		}
		f.Usage, f.DefValue, f.NoOptDefVal = r.help(command)+r.defaultText(command, false), "", cmp.Or(r.Bare, f.NoOptDefVal)
		SetRule(fs, r.Valid, long)
		section, _, _ := strings.Cut(r.Key, ".")
		SetGroup(fs, long, cmp.Or(r.Group, section), r.Rare)
		f.Value = given{f.Value, func() {
			if v[r.Name] = reflect.ValueOf(p).Elem().Interface(); v[r.Name] == "" {
				delete(v, r.Name)
			}
		}}
	}
}

// given is the value of a flag that notes when it was given. An empty text is as none.
type given struct {
	pflag.Value
	note func()
}

func (g given) Set(text string) error {
	err := g.Value.Set(text)
	if err == nil {
		g.note()
	}
	return err
}

// list is the value of a flag that takes lists. Commas separate entries, but not in braces or after a backslash: an entry may be
// a glob. Blanks around entries do not count.
type list struct{ pflag.Value }

var listEntry = lazyregexp.New(`(?:\\.|\{(?:[^{}]|\{[^{}]*\})*\}|[^,])+`)

func (l list) Set(text string) error {
	for _, entry := range listEntry.FindAllString(text, -1) {
		if err := l.Value.(pflag.SliceValue).Append(strings.TrimSpace(entry)); err != nil {
			return err
		}
	}
	return nil
}

// ruleOf is the annotation of a flag with the rule of its values.
const ruleOf = "hone-rule"

// SetRule says which values flags accept, as in the column [Row.Valid].
func SetRule(fs *pflag.FlagSet, rule string, flags ...string) {
	for _, flag := range flags {
		_ = fs.SetAnnotation(flag, ruleOf, []string{rule}) // it exists
	}
}

// Choices returns the values that a flag accepts; nil means any.
func Choices(f *pflag.Flag) []string {
	if rule := f.Annotations[ruleOf]; rule != nil {
		return choicesOf(rule[0])
	}
	return nil
}

// groupOf is the annotation of a flag with its group, and with "rare".
const groupOf = "hone-group"

// Groups returns the groups of flags in the order of the help. The first has all others.
func Groups() []string { return []string{"Flags", "Check", "Model", "Limits", "Output", "Safety"} }

// SetGroup says where the help has a flag. Names of groups may be in lower case.
func SetGroup(fs *pflag.FlagSet, flag, group string, rare bool) {
	_ = fs.SetAnnotation(flag, groupOf, []string{group, fmt.Sprint(rare)}) // it exists
}

// GroupOf returns the group of a flag, and whether it is rarely needed.
func GroupOf(f *pflag.Flag) (group string, rare bool) {
	if said := f.Annotations[groupOf]; said != nil {
		group, rare = said[0], said[1] == "true"
	}
	i := slices.IndexFunc(Groups(), func(title string) bool { return strings.EqualFold(title, group) })
	return Groups()[max(0, i)], rare
}

// FlagProblem returns what is wrong with the values of flags by themselves, and what to
// write instead.
func FlagProblem(fs *pflag.FlagSet) (problem, hint string) {
	fs.Visit(func(f *pflag.Flag) {
		rule, text := f.Annotations[ruleOf], f.Value.String()
		_, isSetting := f.Value.(given)
		if problem != "" || rule == nil || slices.Contains([]string{"", "models", "url"}, rule[0]) || isSetting && text == "" {
			return // models and addresses are checked where they are resolved
		}
		r, v := &Row{Valid: rule[0], standard: text}, any(text)
		switch kind := f.Value.Type(); {
		case strings.HasPrefix(rule[0], "size"):
			r.standard = int64(0)
		case strings.HasPrefix(kind, "int"):
			n, _ := strconv.ParseInt(text, 10, 64)
			r.standard, v = n, n
		case kind == "float64":
			x, _ := strconv.ParseFloat(text, 64)
			r.standard, v = x, x
		case kind == "duration":
			r.standard = time.Duration(0)
		case kind == "stringSlice":
			list, _ := fs.GetStringSlice(f.Name)
			if len(list) == 0 { // an empty list would lift what the file says
				list = []string{""}
			}
			r.standard, v = list, list
		}
		_, problem, hint = r.check(v)
		if problem != "" {
			problem = fmt.Sprintf("--%s: %s", f.Name, problem)
		}
	})
	return problem, hint
}

func (r *Row) help(command string) string {
	if other := r.In[command].Help; other != "" {
		return other
	}
	return r.Help
}

func (r *Row) defaultText(command string, key bool) string {
	text := r.text(r.defaultIn(command), key)
	switch {
	case key && strings.Contains(r.help("config"), "(default"):
		return ""
	case command == "resume":
		return " (default: the run's own)"
	case r.Unset != "":
		return " (default: " + r.Unset + ")"
	case text == "" && key:
		return " (default: none)"
	case text == "", !key && text == "false", !key && text == "0" && r.Valid != "natural":
		return ""
	}
	if key && !strings.HasPrefix(r.Key, "LOOP") {
		usual := text
		for _, loop := range strings.Fields(loopNames) {
			switch other := r.text(r.defaultIn(loop), true); {
			case usual == "0":
				usual, text = other, other
			case other != usual:
				text += "; in " + loop + " " + other
			}
		}
	}
	return " (default " + text + ")"
}

func (r *Row) text(value any, toml bool) string {
	switch value := value.(type) {
	case string:
		if toml && value != "" {
			return strconv.Quote(value)
		}
		return value
	case time.Duration:
		text := strings.TrimSuffix(value.String(), "0s")
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
		if toml {
			return strconv.Quote(text)
		}
		return text
	case []string:
		return ""
	}
	if strings.HasPrefix(r.Valid, "size") {
		return r.Example
	}
	return fmt.Sprint(value)
}

// Help returns a file with all settings as hone help config prints it: each with its help,
// its default and an example.
func Help() string {
	var b strings.Builder
	line := func(r *Row, key, help, more string) {
		example := cmp.Or(r.Example, r.text(r.defaultIn(strings.Split(key, ".")[0]), true))
		_, key, _ = strings.Cut(key, ".")
		fmt.Fprintf(&b, "# %s%s\n%s = %s\n", strings.ReplaceAll(help, "`", ""), more, key, example)
	}
	section := ""
	for _, r := range table {
		if name, _, ok := strings.Cut(r.Key, "."); ok && name != "LOOP" && !hasWord(loopNames, name) {
			if name != section {
				fmt.Fprintf(&b, "\n[%s]\n", name)
			}
			if section = name; r.Key == Wall.Key {
				b.WriteString("# Paths are relative to the project, absolute, or begin with ~/.\n")
			}
			line(r, r.Key, r.help("config"), r.defaultText("config", true))
		}
	}
	for _, loop := range strings.Fields(loopNames) {
		fmt.Fprintf(&b, "\n[%s]\n", loop)
		for _, r := range table {
			for _, key := range r.keys(loop) {
				if strings.HasPrefix(key, loop+".") {
					help := r.help(loop)
					if r.Own {
						help = r.Help + ", instead of that in [" + strings.Split(r.Key, ".")[0] + "]"
					}
					line(r, key, help, r.defaultText(loop, !r.Own))
				}
			}
		}
	}
	return b.String()
}
