// Command performance compares what hone costs with what a minimal program costs that does the same job. It prints one
// table. Each round measures all rows in turn, so that a change of the machine's load affects them all.
//
// It plays the model itself, without delay. hone and the bare client send nothing to another machine.
//
//	performance -hone PROGRAM [-write PAGE] [-rounds N] [-quick]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
)

// bench is what the rows are measured with.
type bench struct {
	dir        string // for all that is made
	hone, bare string // programs
	url        string
	server     *server
	sizes
}

func main() {
	log.SetFlags(0)
	hone := flag.String("hone", "../../bin/hone", "the program to measure")
	page := flag.String("write", "", "also write the table to this page, between its markers")
	rounds := flag.Int("rounds", 7, "number of rounds")
	small := flag.Bool("quick", false, "one round with small sizes, to see whether everything works")
	flag.Parse()
	s := sizes{rounds: *rounds, turns: 20, once: []int{8, 64}, files: []int{1000, 10000, 50000}, agents: true}
	if *small {
		s = quick()
	}
	table, err := measure(*hone, s, os.Stderr)
	fmt.Print(table)
	if *page != "" && err == nil {
		err = write(*page, table)
	}
	if err != nil {
		log.Fatal("error: ", err)
	}
}

// quick returns sizes that show whether everything works, and nothing else.
func quick() sizes {
	return sizes{rounds: 1, cold: true, turns: 2, once: []int{2}, files: []int{100}}
}

// measure returns the table. The error is about rows that every machine can measure.
func measure(hone string, s sizes, progress io.Writer) (string, error) {
	b, err := prepare(hone, s)
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(b.dir)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // a terminal interrupts the measured program, too
	defer stop()
	web := httptest.NewServer(b.server)
	defer web.Close()
	b.url = web.URL
	before := load()
	groups := b.groups()
	for round := range s.rounds + 1 { // the first warms up: caches, the proofs of walls
		if round == 0 && s.cold {
			continue
		}
		fmt.Fprintf(progress, "round %d of %d\n", round, s.rounds)
		for _, g := range groups {
			g.round(round)
			if ctx.Err() != nil {
				return "", errors.New("interrupted")
			}
		}
	}
	return b.about(before) + "\n" + render(groups), failures(groups)
}

// prepare builds the programs.
func prepare(hone string, s sizes) (*bench, error) {
	dir, err := os.MkdirTemp("", "performance")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, bare: filepath.Join(dir, "bare"), server: &server{sessions: map[string]*session{}}, sizes: s}
	if b.hone, err = filepath.Abs(hone); err == nil {
		err = errors.Join(
			runGo("build", "-trimpath", "-o", b.bare, "./bare"),
			runGo("-C", "../..", "test", "-trimpath", "-c", "-o", filepath.Join(dir, "journal.test"), "./journal"))
	}
	if err != nil {
		_ = os.RemoveAll(dir)
	}
	return b, err
}

// runGo runs the go command.
func runGo(args ...string) error {
	c := exec.Command("go", args...)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go %v: %v: %s", args, err, out)
	}
	return nil
}

// round measures each row once. Round 0 does not count.
func (g group) round(n int) {
	for _, r := range g.rows {
		if r.err != nil {
			continue
		}
		f, err := r.measure()
		if err != nil {
			r.err = err
		} else if n > 0 {
			r.got = append(r.got, f)
		}
	}
}

// failures returns the errors of the rows that every machine can measure.
func failures(groups []group) error {
	var all []error
	for _, g := range groups {
		for _, r := range g.rows {
			if r.err != nil && !r.optional {
				all = append(all, fmt.Errorf("%s: %s: %w", g.title, r.name, r.err))
			}
		}
	}
	return errors.Join(all...)
}

const (
	begin = "<!-- make bench writes from here -->\n"
	end   = "<!-- to here -->\n"
)

// write replaces the text between the markers of a page.
func write(page, table string) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(text, []byte(begin))
	_, tail, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return fmt.Errorf("%s has no markers for the table", page)
	}
	return os.WriteFile(page, fmt.Appendf(nil, "%s%s\n%s\n%s%s", head, begin, table, end, tail), 0o644)
}
