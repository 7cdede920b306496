package allow

import (
	"slices"
	"strings"
)

// git checks a call of git: some of its commands, and of its options those
// that run no others. What an alias runs cannot be seen, so that commands are
// those that git has.
func (c *checker) git(args []arg) error {
	if c.moves {
		return disallow("git in a line with cd", "a folder could bring a configuration of its own, which runs programs", "run git in the working directory, with paths")
	}
	for len(args) > 0 && gitPlain(args[0]) {
		args = args[1:]
	}
	switch {
	case len(args) == 0:
		return nil
	case !args[0].fixed:
		return unclear("git")
	case strings.HasPrefix(args[0].text, "-"):
		return disallow("git "+args[0].text, "options before git's command can run programs, or lead to another repository", "write git COMMAND …, in the working directory")
	}
	command := args[0].text
	g, ok := gitGrammar(command)
	if !ok {
		return disallow("git "+command, "it is not among the commands of git that only look at or change this repository", "use "+strings.Join(gitCommands(), ", "))
	}
	p, err := g.parse("git "+command, args[1:])
	if err != nil {
		return err
	}
	if command == "grep" && !p.has("e", "f") && len(p.operands) > 0 {
		p.operands = p.operands[1:]
	}
	if command == "config" && !gitReads(p) {
		return disallow("git config", "it could set what git runs", "use git config --get NAME")
	}
	return c.sorted(p)
}

// gitReads reports whether git config only tells what is set.
func gitReads(p parsed) bool {
	verb := len(p.operands) > 0 && slices.Contains([]string{"set", "unset", "edit", "rename-section", "remove-section"}, p.operands[0].text)
	return p.has("get", "get-all", "get-regexp", "list", "l") && !verb
}

// gitPlain are the options before the command that change nothing.
func gitPlain(a arg) bool {
	return a.fixed && slices.Contains([]string{"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--version"}, a.text)
}

func gitCommands() []string {
	return strings.Fields(`status diff log show blame annotate shortlog grep ls-files ls-tree cat-file rev-parse rev-list branch tag
		reflog describe name-rev merge-base diff-tree diff-index diff-files for-each-ref show-ref check-ignore count-objects config version
		add commit rm mv restore checkout switch reset stash clean apply`)
}

// gitGrammar is how a command reads its options; ok is false where it is none
// of those that are let pass.
func gitGrammar(command string) (grammar, bool) {
	g := grammar{refuse: []string{"ext-diff", "textconv", "open-files-in-pager", "filters", "unsafe-paths"}, known: []string{"text"}}
	switch command {
	case "add", "rm", "mv", "checkout", "restore", "reset", "ls-files", "check-ignore", "commit", "stash":
		g.names = true
	}
	switch command {
	case "log", "show", "diff", "diff-tree", "diff-index", "diff-files", "shortlog", "reflog", "rev-list":
		g.texts = "SG"
		if command == "log" {
			g.texts += "L"
		}
		g.free = []string{"grep", "author", "committer", "since", "until", "after", "before", "date"}
		g.behind = []string{"format", "pretty", "word-diff-regex", "src-prefix", "dst-prefix"}
	case "blame", "annotate":
		g.texts, g.free = "L", []string{"date"}
	case "grep":
		g.texts, g.values = "e", "fmABC"
		g.refuse = append(g.refuse, "O")
	case "commit", "tag", "stash":
		g.texts, g.values, g.free = "m", "FC", []string{"message", "author", "date"}
	case "branch", "for-each-ref":
		g.behind = []string{"format", "sort"}
	case "config":
		g.refuse = append(g.refuse, "e", "edit", "add", "unset", "unset-all", "replace-all", "rename-section", "remove-section")
	default:
		if !slices.Contains(gitCommands(), command) {
			return g, false
		}
	}
	return g, true
}
