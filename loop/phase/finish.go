package phase

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hone"
	"hone/internal/render"
)

// Finish records in both repositories that a phase has passed. It does nothing for
// any other end, and may be called again.
func (l *Loop) Finish(ctx context.Context, r *hone.Run, end hone.End) error {
	if end.Kind != hone.KindDone {
		return nil
	}
	sum, err := specsDigest(r.Tree.Dir(), l.Phase)
	if err != nil {
		return err
	}
	trailers := []string{trailerRun + ": " + r.Journal.Run(), trailerSpecs + ": " + sum}
	for _, repo := range []string{Src, Tests} {
		if message, err := passedMessage(ctx, l.Git, filepath.Join(r.Tree.Dir(), repo), l.Phase); err == nil && strings.Contains(message, trailers[0]) {
			continue // an earlier process made the commit
		}
		if _, err := l.commitIn(ctx, r.Tree, repo, passedPoint, trailers); err != nil {
			return fmt.Errorf("record that phase %d passed: %w", l.Phase, err)
		}
	}
	return nil
}

// Summary returns how a phase ended: that it passed, or what it is stuck on
// (ruling A11). It is empty for an end that is neither.
func (l *Loop) Summary(r *hone.Run, end hone.End) string {
	if end.Kind == hone.KindDone {
		by := ""
		if last, ok, err := hone.Last[suiteRun](r, stepSuite); err == nil && ok && last.Absent {
			by = " by the verifier's report alone"
		}
		text := fmt.Sprintf("✓ Phase %d passed%s\n", l.Phase, by)
		due, err := l.dueItems(r)
		names, other := l.unseen(r, due)
		if err == nil && other == nil && len(names) > 0 {
			text += "hone did not see these points fail; review their tests:\n"
			for _, name := range names {
				text += "  " + render.Line(name) + "\n"
			}
		}
		return text
	}
	if !slices.Contains([]hone.Kind{hone.KindRounds, hone.KindStuck, hone.KindBlocked}, end.Kind) {
		return ""
	}
	var b strings.Builder
	contracts, logs := fromSource(end.Findings, sourceContract), append(fromSource(end.Findings, sourceHealth), fromSource(end.Findings, sourceServer)...)
	var see []string
	if len(contracts) > 0 {
		see = []string{failedPath}
	}
	for _, f := range logs {
		see = append(see, logName(f.Source))
	}
	if see == nil {
		see = []string{"what the check reports"}
	}
	fmt.Fprintf(&b, "✗ Phase %d is STUCK — see %s\n", l.Phase, strings.Join(see, ", "))
	for _, f := range contracts {
		fmt.Fprintf(&b, "\n%s\n", render.Escape(strings.TrimSpace(f.Text)))
	}
	for _, f := range logs {
		fmt.Fprintf(&b, "\n%s, the end of it:\n%s\n", logName(f.Source), render.Escape(tail(f.Text, 20)))
	}
	return b.String()
}

func logName(source string) string {
	if source == sourceServer {
		return devLog
	}
	return lintLog
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
