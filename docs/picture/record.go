package main

import (
	"os/exec"
	"strings"
	"time"

	"github.com/creack/pty"
)

// output is what a program wrote to its terminal at a time.
type output struct {
	at   time.Duration
	text string
}

// record types a command line at a prompt, runs it in a shell on a terminal of its own,
// and returns everything that the terminal received until the next prompt.
func record(c *exec.Cmd, line string, columns, rows uint16) ([]output, error) {
	recording := typed(line)
	start := time.Now().Add(-recording[len(recording)-1].at)
	terminal, err := pty.StartWithSize(c, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return nil, err
	}
	defer terminal.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := terminal.Read(buffer)
		recording = append(recording, output{time.Since(start), string(buffer[:n])})
		if err != nil {
			err = c.Wait() // the other error says that the program has closed the terminal
			return append(recording, output{time.Since(start), prompt}), err
		}
	}
}

const prompt = "\x1b[32m$\x1b[0m "

// typed returns how a user types a line after the prompt.
func typed(line string) []output {
	at := 600 * time.Millisecond
	keys := []output{{0, prompt}}
	for _, key := range line {
		keys = append(keys, output{at, string(key)})
		at += 45 * time.Millisecond
	}
	return append(keys, output{at + 300*time.Millisecond, "\r\n"})
}

// texts returns all that was written.
func texts(recording []output) string {
	var b strings.Builder
	for _, o := range recording {
		b.WriteString(o.text)
	}
	return b.String()
}
