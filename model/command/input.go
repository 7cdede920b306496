package command

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"hone/model"
)

// texts splits a request into its prompt and all text that stands before it.
func texts(req model.Request) (prompt, before string) {
	all := []string{req.System}
	for i, m := range req.Messages {
		for _, p := range m.Parts {
			if p.Text == "" {
				continue
			}
			all = append(all, p.Text)
			if i == len(req.Messages)-1 {
				prompt = p.Text
			}
		}
	}
	if prompt == "" {
		return "", ""
	}
	return prompt, join(all[:len(all)-1]...)
}

// join joins the texts that are not empty by blank lines.
func join(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		t = strings.TrimRight(t, "\n")
		if t == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t)
	}
	return b.String()
}

// stdin is what the agent reads, nil for nothing.
func (a *Agent) stdin(prompt, before string) io.Reader {
	switch a.config.Stdin {
	case StdinContext:
		return strings.NewReader(before)
	case StdinAll:
		return strings.NewReader(join(before, prompt))
	}
	return nil
}

// argv is the command line of one session, or says that a text does not fit
// into it.
func (a *Agent) argv(prompt, before string) ([]string, error) {
	// A replacer makes one pass: a prompt that has "{context}" in it stays so.
	fill := strings.NewReplacer("{model}", a.config.Model, "{prompt}", prompt, "{context}", before)
	argv := make([]string, len(a.config.Argv))
	for i, template := range a.config.Argv {
		argv[i] = fill.Replace(template)
		hint := `take {prompt} out of argv in %s, with the option before it, and write stdin = "all"`
		if strings.Contains(template, "{context}") {
			hint = `take {context} out of argv in %s: it is given on standard input then`
		}
		if strings.IndexByte(argv[i], 0) >= 0 {
			return nil, a.config.invalid(fmt.Sprintf("its argument %d would have a NUL in it", i), hint)
		}
		if len(argv[i]) > mostArgument() {
			return nil, a.config.invalid(fmt.Sprintf("its argument %d would have %d bytes, and the system takes %d at most", i, len(argv[i]), mostArgument()), hint)
		}
	}
	return argv, nil
}

// mostArgument is how many bytes one argument may have: Linux takes 128 KiB
// with the NUL at its end, Windows 32,767 characters for the whole line. Where
// the system takes more, the bound is the same, so that a project behaves alike.
func mostArgument() int {
	if runtime.GOOS == "windows" {
		return 32000
	}
	return 128<<10 - 1
}
