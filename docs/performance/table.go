package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// render returns the table in Markdown.
func render(groups []group) string {
	lines := [][]string{
		{"", "wall ms", "× floor", "1st request ms", "× floor", "CPU ms", "sent KB", "RSS / PSS MB"},
		{"---", "--:", "--:", "--:", "--:", "--:", "--:", "--:"},
	}
	for _, g := range groups {
		lines = append(lines, []string{"**" + g.title + "**", "", "", "", "", "", "", ""})
		for _, r := range g.rows {
			lines = append(lines, r.cells(g.rows[0], g.rows[r.base]))
		}
	}
	return align(lines)
}

// cells returns the row's cells.
func (r *row) cells(floor, base *row) []string {
	if r.err != nil {
		return []string{r.name + " (not measured: " + firstLine([]byte(r.err.Error())) + ")", "–", "", "", "", "", "", ""}
	}
	times := withGoal(ratio(r, floor, wall), r.goal.times)
	if r.goal.plus > 0 {
		times = strings.TrimPrefix(times+"; "+withGoal(median(r.got, wall)-median(base.got, wall), r.goal.plus)+" ms more", "; ")
	}
	return []string{r.name, medianAndMinimum(r.got, wall), times, number(median(r.got, first)), withGoal(ratio(r, floor, first), r.goal.first),
		withGoal(median(r.got, cpu), r.goal.cpu), withGoal(median(r.got, sent), r.goal.sent),
		strings.Trim(number(median(r.got, rss))+" / "+withGoal(median(r.got, pss), r.goal.pss), " /")}
}

// align pads the cells, so that the table is readable as plain text.
func align(lines [][]string) string {
	widths := make([]int, len(lines[0]))
	for _, cells := range lines {
		for i, cell := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, cells := range lines {
		for i, cell := range cells {
			fmt.Fprintf(&out, "| %-*s ", widths[i], cell)
		}
		out.WriteString("|\n")
	}
	return out.String()
}

// The columns.
func wall(f figures) float64  { return f.wall.Seconds() * 1000 }
func first(f figures) float64 { return f.first.Seconds() * 1000 }
func cpu(f figures) float64   { return f.cpu.Seconds() * 1000 }
func sent(f figures) float64  { return f.sent / 1000 }
func rss(f figures) float64   { return f.rss / 1e6 }
func pss(f figures) float64   { return f.pss / 1e6 }

// values returns a column of some measurements, sorted.
func values(got []figures, column func(figures) float64) []float64 {
	var all []float64
	for _, f := range got {
		all = append(all, column(f))
	}
	slices.Sort(all)
	return all
}

func median(got []figures, column func(figures) float64) float64 {
	all := values(got, column)
	if len(all) == 0 {
		return 0
	}
	return (all[(len(all)-1)/2] + all[len(all)/2]) / 2
}

// ratio returns the median as a multiple of the floor's.
func ratio(r, floor *row, column func(figures) float64) float64 {
	if least := median(floor.got, column); least > 0 {
		return median(r.got, column) / least
	}
	return 0
}

// medianAndMinimum returns the median, and the minimum in parentheses; nothing if nothing was measured.
func medianAndMinimum(got []figures, column func(figures) float64) string {
	text := number(median(got, column))
	if text == "" {
		return ""
	}
	return text + " (" + number(values(got, column)[0]) + ")"
}

// number returns a figure with two or three digits; nothing for 0, which was not measured.
func number(x float64) string {
	switch size := math.Abs(x); {
	case x == 0:
		return ""
	case size >= 10:
		return fmt.Sprintf("%.0f", x)
	case size >= 1:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.2g", x)
	}
}

// withGoal returns a figure with its goal, if it has one; in bold if it misses that.
func withGoal(x, goal float64) string {
	switch text := number(x); {
	case goal == 0 || text == "":
		return text
	case x > goal:
		return fmt.Sprintf("**%s** (goal %s)", text, number(goal))
	default:
		return fmt.Sprintf("%s (goal %s)", text, number(goal))
	}
}

// about returns what was measured, and where.
func (b *bench) about(before string) string {
	version, _ := exec.Command(b.hone, "version").Output()
	text := fmt.Sprintf("%s; %d cores%s; %s. Rounds: %d. Load before: %s; after: %s.\n",
		firstLine(version), runtime.NumCPU(), kernel(), time.Now().UTC().Format("2006-01-02 15:04 UTC"), b.rounds, before, load())
	if isBusy(before) { // after it, the load is that of the measurements, too
		text += "**The machine was busy**: rely on the bytes, not on the times.\n"
	}
	return text
}

// isBusy reports whether other processes used more than half of the cores.
func isBusy(load string) bool {
	last, _, _ := strings.Cut(load, " ")
	n, err := strconv.ParseFloat(last, 64)
	return err == nil && n > float64(runtime.NumCPU())/2
}

func kernel() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return ", kernel " + strings.TrimSpace(string(text))
}

// load returns how many processes have run or waited to run, on average, in the last 1, 5 and 15 minutes.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return "unknown"
	}
	return strings.Join(fields[:3], " ")
}
