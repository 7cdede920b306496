package command

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"hone/model"
)

// splitPrompt returns a request's prompt and the text before it.
func splitPrompt(req model.Request) (prompt, before string) {
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
	return prompt, joinTexts(all[:len(all)-1]...)
}

// joinTexts joins the non-empty texts with blank lines.
func joinTexts(texts ...string) string {
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

// stdin returns the agent's standard input; nil if it is empty.
func (a *Agent) stdin(prompt, before string) io.Reader {
	switch a.config.Stdin {
	case StdinContext:
		return strings.NewReader(before)
	case StdinAll:
		return strings.NewReader(joinTexts(before, prompt))
	}
	return nil
}

// argv returns the command line of one session, or an error if a text does not
// fit.
func (a *Agent) argv(prompt, before string) ([]string, error) {
	// A replacer makes one pass, so a prompt may contain "{context}".
	fill := strings.NewReplacer("{model}", a.config.Model, "{prompt}", prompt, "{context}", before)
	argv := make([]string, len(a.config.Argv))
	for i, template := range a.config.Argv {
		argv[i] = fill.Replace(template)
		hint := `remove {prompt} and its option from argv in %s, and write stdin = "all"`
		if strings.Contains(template, "{context}") {
			hint = `remove {context} from argv in %s; the agent then receives it on standard input`
		}
		if strings.IndexByte(argv[i], 0) >= 0 {
			return nil, a.config.invalid(fmt.Sprintf("argument %d would contain a NUL character", i), hint)
		}
		if len(argv[i]) > maxArgument() {
			return nil, a.config.invalid(fmt.Sprintf("argument %d would be %d bytes long, but the limit is %d", i, len(argv[i]), maxArgument()), hint)
		}
	}
	return argv, nil
}

// maxArgument returns the limit for one argument, in bytes. Linux allows
// 128 KiB including the final NUL, Windows 32,767 characters for the entire
// command line. Systems that allow more get Linux's limit, so that a project
// behaves the same everywhere.
func maxArgument() int {
	if runtime.GOOS == "windows" {
		return 32000
	}
	return 128<<10 - 1
}
