//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"hone/internal/config"
)

// block is a fenced block of a page.
type block struct {
	section  string // the anchor of its section
	number   int    // in its section, from 1; 0 for text, such as output, which no script uses
	language string
	text     string
}

// blockLine matches, in a script, the command that uses a block.
var blockLine = regexp.MustCompile(`(?m)^(?:! |\[[^\n\]]+\] )*block (?:-\w+ \S+ )*([\w-]+)(?: (\d+))?$`)

// pages returns the paths of README.md and all pages of docs.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(all) == 0 {
		t.Fatal("docs has no pages", err)
	}
	return append(all, "../../README.md")
}

// parse returns the blocks of a page, the anchors of its headings as GitHub makes them,
// and the text outside of blocks.
func parse(t *testing.T, path string) (blocks []block, anchors map[string]bool, prose string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	anchors = map[string]bool{}
	section, numbers := "", map[string]int{}
	piece := regexp.MustCompile("(?ms)^(?:#+ ([^\n]+)|( *)```(\\w*)\n(.*?)\n *```)$")
	prose = piece.ReplaceAllStringFunc(string(page), func(text string) string {
		switch m := piece.FindStringSubmatch(text); {
		case m[1] != "":
			section = anchor(m[1])
			for n := 1; anchors[section]; n++ {
				section = fmt.Sprintf("%s-%d", anchor(m[1]), n)
			}
			anchors[section] = true
			return text
		default:
			n := 0
			if m[3] != "text" {
				numbers[section]++
				n = numbers[section]
			}
			blocks = append(blocks, block{section, n, m[3], strings.ReplaceAll("\n"+m[4], "\n"+m[2], "\n")[1:] + "\n"})
			return ""
		}
	})
	return blocks, anchors, prose
}

func anchor(title string) string {
	title = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(title), "")
	return strings.ReplaceAll(title, " ", "-")
}

// scriptOf returns the path of the script that runs a page's blocks.
func scriptOf(page string) string {
	if page == "../../docs/README.md" {
		page = "index.md"
	}
	return filepath.Join("testdata/docs", strings.TrimSuffix(filepath.Base(page), ".md")+".txtar")
}

// TestDocs runs the blocks of README.md and docs/*.md. A page's script, testdata/docs/PAGE.txtar, sets the
// scene with the commands of [TestScripts] and these:
//
//	block SECTION [N]           runs the N-th block (default: 1) of a section as a shell script with -e. The section
//	                            is named as in a link, and blocks of text are not counted
//	block -status S SECTION     the same, but the script must exit with status S
//	block -to FILE SECTION      writes the block to FILE, of whatever language it is
//	shows SECTION               the last command printed each line of the section's blocks of text, but for digits and ids
//	yaml FILE TO PATH…          writes to TO the text, or the list of texts, at each PATH of FILE, such as jobs.0.script
//	workflow FILE               FILE is a workflow that gives hone's action only inputs that it has
func TestDocs(t *testing.T) {
	skipShort(t)
	t.Parallel()
	runScripts(t, "testdata/docs/*.txtar", map[string]func(*testscript.TestScript, bool, []string){
		"block":    func(ts *testscript.TestScript, _ bool, args []string) { runBlock(t, ts, args) },
		"shows":    func(ts *testscript.TestScript, _ bool, args []string) { shows(t, ts, args[0]) },
		"yaml":     yamlTexts,
		"workflow": func(ts *testscript.TestScript, _ bool, args []string) { workflowFits(t, ts.ReadFile(args[0])) },
	})
}

func runBlock(t *testing.T, ts *testscript.TestScript, args []string) {
	status, to := "0", ""
	for ; strings.HasPrefix(args[0], "-"); args = args[2:] {
		switch args[0] {
		case "-status":
			status = args[1]
		case "-to":
			to = args[1]
		default:
			ts.Fatalf("block has no flag %s", args[0])
		}
	}
	page := pageOf(ts)
	blocks, _, _ := parse(t, page)
	i := slices.IndexFunc(blocks, func(b block) bool {
		return slices.Equal(args, []string{b.section}) && b.number == 1 || slices.Equal(args, []string{b.section, strconv.Itoa(b.number)})
	})
	switch {
	case i < 0:
		ts.Fatalf("%s has no block %s", page, strings.Join(args, " "))
	case to != "":
		to = ts.MkAbs(to)
		ts.Check(os.MkdirAll(filepath.Dir(to), 0o755))
		ts.Check(os.WriteFile(to, []byte(blocks[i].text), 0o755))
	case blocks[i].language != "sh":
		ts.Fatalf("a block of %s is not run; -to writes it to a file", blocks[i].language)
	default:
		exits(ts, []string{status, "sh"}, ts.Exec("sh", "-e", "-c", blocks[i].text))
	}
}

func pageOf(ts *testscript.TestScript) string {
	if ts.Name() == "README" {
		return "../../README.md"
	}
	return "../../docs/" + ts.Name() + ".md"
}

// shows compares lines without digits, ids, the amount of white space, and the time of a
// tool call, which only a slow one has outside of tests.
func shows(t *testing.T, ts *testscript.TestScript, section string) {
	plain := func(text string) string {
		text = regexp.MustCompile(`(: ok(?:, [0-9]+ \w+)?), [0-9hms.]+$`).ReplaceAllString(text, "$1")
		text = regexp.MustCompile(`-[0-9a-f]{6}\b|\b[0-9][0-9hms.]*[ms]\b|[0-9]+`).ReplaceAllString(text, "0")
		return strings.Join(strings.Fields(text), " ")
	}
	printed := map[string]bool{}
	for line := range strings.SplitSeq(ts.ReadFile("stdout")+"\n"+ts.ReadFile("stderr"), "\n") {
		printed[plain(line)] = true
	}
	blocks, _, _ := parse(t, pageOf(ts))
	found := 0
	for _, b := range blocks {
		if b.section != section || b.language != "text" {
			continue
		}
		found++
		for line := range strings.SplitSeq(b.text, "\n") {
			if !printed[plain(line)] {
				ts.Fatalf("not printed: %s", line)
			}
		}
	}
	if found == 0 {
		ts.Fatalf("%s has no block of text", section)
	}
}

func yamlTexts(ts *testscript.TestScript, _ bool, args []string) {
	text := ""
	for _, path := range args[2:] {
		var at any
		ts.Check(yaml.Unmarshal([]byte(ts.ReadFile(args[0])), &at))
		for key := range strings.SplitSeq(path, ".") {
			switch v := at.(type) {
			case map[string]any:
				at = v[key]
			case []any:
				i, err := strconv.Atoi(key)
				ts.Check(err)
				at = v[i]
			}
		}
		list, ok := at.([]any)
		if !ok {
			list = []any{at}
		}
		for _, line := range list {
			text += fmt.Sprintln(line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// TestDocsBlocks checks that each block is used: commands and files by the page's script, a
// configuration that no script uses by the decoder, and a program by the compiler.
func TestDocsBlocks(t *testing.T) {
	skipDocs(t)
	t.Parallel()
	scripts, err := filepath.Glob("testdata/docs/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		scripts = slices.DeleteFunc(scripts, func(path string) bool { return path == scriptOf(page) })
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			script, err := os.ReadFile(scriptOf(page))
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			uses := map[string]bool{}
			for _, m := range blockLine.FindAllStringSubmatch(string(script), -1) {
				uses[m[1]+" "+cmp.Or(m[2], "1")] = true
			}
			blocks, _, prose := parse(t, page)
			if strings.Contains(prose, "\n\n    ") {
				t.Error("an indented block: give it a fence and a language")
			}
			for _, b := range blocks {
				name := fmt.Sprintf("%s %d", b.section, b.number)
				switch used := uses[name]; {
				case used || b.number == 0:
				case b.language == "toml":
					validConfiguration(t, name, b.text)
				case b.language == "go" && strings.HasPrefix(b.text, "package main\n"):
					compiles(t, name, b.text)
				default:
					t.Errorf("no test runs the block %s, of language %q; %s has to use it", name, b.language, scriptOf(page))
				}
				delete(uses, name)
			}
			for name := range uses {
				t.Errorf("%s uses the block %s, which does not exist", scriptOf(page), name)
			}
		})
	}
	if len(scripts) > 0 {
		t.Errorf("no page has the scripts %v", scripts)
	}
}

func validConfiguration(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := createFile(dir, config.HonePath, []byte(text)); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(dir); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func compiles(t *testing.T, name, text string) {
	t.Helper()
	dir := t.TempDir()
	if err := createFile(dir, "main.go", []byte(text)); err != nil {
		t.Fatal(err)
	}
	// The settings of make build, whose packages are compiled already. It compiles without linking.
	build := exec.Command("go", "list", "-export", "-trimpath", filepath.Join(dir, "main.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", name, err, out)
	}
}

// TestDocsLinks checks that each relative link leads to a file and, with an anchor, to a heading.
func TestDocsLinks(t *testing.T) {
	skipDocs(t)
	for _, page := range append(pages(t), "../../CONTRIBUTING.md") {
		_, _, prose := parse(t, page)
		prose = inlineCode.ReplaceAllString(prose, "")
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			path, heading, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s: %v", page, m[1], err)
			} else if heading != "" {
				if _, anchors, _ := parse(t, target); !anchors[heading] {
					t.Errorf("%s: the link %s leads to no heading", page, m[1])
				}
			}
		}
	}
}

// TestReadme checks that README.md is short enough to be read.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > 150 {
		t.Errorf("README.md has %d lines, more than 150", len(lines))
	}
	for i, line := range lines {
		if utf8.RuneCountInString(line) > 120 {
			t.Errorf("README.md:%d has more than 120 characters", i+1)
		}
	}
}

var inlineCode = regexp.MustCompile("(?s)(`+)(.+?)`+")

// TestDocsCommands checks that each command and flag of hone that the pages mention exists.
func TestDocsCommands(t *testing.T) {
	skipDocs(t)
	root := (&app{}).command()
	union := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, c := range allCommands(root) {
		c.InitDefaultHelpFlag()
		union.AddFlagSet(c.Flags())
	}
	for _, page := range pages(t) {
		blocks, _, prose := parse(t, page)
		for _, m := range inlineCode.FindAllStringSubmatch(prose, -1) {
			checkWords(t, page, root, union, m[2])
		}
		for _, b := range blocks {
			if b.language != "sh" && b.language != "text" {
				continue
			}
			for line := range strings.SplitSeq(strings.ReplaceAll(b.text, "\\\n", ""), "\n") {
				checkWords(t, page, root, union, line)
			}
		}
	}
}

func allCommands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, allCommands(sub)...)
	}
	return all
}

// otherFlags are the flags of other programs that pages mention alone, and those of CodeScribe that
// hone task accepts too, but does not list.
var otherFlags = strings.Fields("--auth-type --cap-drop --privileged --read-only --security-opt --tmpfs " +
	"--agent-loops --agent-iterations --workdir")

// checkWords checks the words of a command line, or of a list of flags. Flags is what a flag alone may be.
func checkWords(t *testing.T, page string, root *cobra.Command, flags *pflag.FlagSet, line string) {
	t.Helper()
	words := strings.Fields(regexp.MustCompile(`"[^"]*"|'[^']*'|\s#.*`).ReplaceAllString(line, " Q "))
	if len(words) > 0 && words[0] == "hone" {
		rest, _ := withoutAll(words[1:]) // of --all, which only help has
		words = append(words[:1:1], rest...)
	}
	of := flags // the flags of the command that the words belong to; nil if it is another program's
	for i, word := range words {
		first := i == 0 || regexp.MustCompile(`^([|&;!]+|if|\w+:)$|;$`).MatchString(words[i-1])
		name := regexp.MustCompile(`^\[?(--[a-z][a-z-]*)`).FindStringSubmatch(word)
		switch {
		case first && word == "hone" && i+1 < len(words):
			of = commandFlags(t, page, root, flags, words[i+1:])
		case first && name == nil, word == "--":
			of = nil
		case name != nil && of != nil && of.Lookup(name[1][2:]) == nil && !slices.Contains(otherFlags, name[1]):
			t.Errorf("%s: there is no flag %s: %s", page, name[1], line)
		}
	}
}

// commandFlags returns the flags of the command that words begin with. A word such as LOOP
// is any command.
func commandFlags(t *testing.T, page string, root *cobra.Command, union *pflag.FlagSet, words []string) *pflag.FlagSet {
	t.Helper()
	c, _, err := root.Find(words)
	if err == nil && c != root {
		c.Flags().AddFlagSet(c.InheritedFlags())
		return c.Flags()
	}
	if strings.ToUpper(words[0]) != words[0] && !strings.HasPrefix(words[0], "-") {
		t.Errorf("%s: hone has no command %s", page, words[0])
	}
	return union
}
