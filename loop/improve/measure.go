package improve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"hone"
	"hone/history"
	"hone/internal/render"
	"hone/loop"
	"hone/sandbox"
)

// The number of samples of a measurement, and of the first ones, which show the noise.
const (
	firstSamples = 5
	manySamples  = 10
	equalSamples = 2 // if the first ones are all equal
)

// allAlpha is the probability that a run without any real gain keeps a change.
const allAlpha = 0.05

// meter measures clean copies of the tree. It remembers nothing between measurements.
type meter struct {
	session loop.Session
	run     *hone.Run
	line    string // the metric
	confirm string // a second metric that a change must not worsen; empty if there is none
	profile string // prints where the time goes; empty if there is none
	name    string
	lower   bool
	samples int     // 0: that follows from the first ones
	gain    float64 // the smallest, as a part
	timeout time.Duration
	redact  func(string) string
}

// noScore is why a command gave no number.
type noScore struct{ error }

// once runs a metric in a clean copy of its own. It returns its numbers, and those of the name that decides, of which there
// must be want, or any number of them if that is 0: a name that appears more often than at the start was printed by what is measured.
func (m meter) once(ctx context.Context, c hone.Copies, best bool, line string, want int) (v values, decide []float64, err error) {
	got, err := m.output(ctx, c, best, line, "the metric")
	if err != nil {
		return nil, nil, err
	}
	v = readMetric(got.Stdout)
	decide, err = v.numbersOf(m.name)
	switch {
	case err != nil:
		return nil, nil, noScore{err}
	case want > 0 && len(decide) != want:
		return nil, nil, noScore{fmt.Errorf("the metric printed %s %d times instead of %d", m.name, len(decide), want)}
	}
	return v, decide, nil
}

// output runs a command line in a clean copy of its own. The error is a noScore, which says
// what the line is, or one of the machine.
func (m meter) output(ctx context.Context, c hone.Copies, best bool, line, what string) (got sandbox.Result, err error) {
	dir, err := c(ctx, best)
	if err != nil {
		return got, err
	}
	r, remove, err := m.session.InCopy(dir)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	argv := sandbox.Shell(line)
	if cpu := lastCPU(); cpu != "" {
		argv = append([]string{"taskset", "-c", cpu}, argv...)
	}
	got, err = r.Run(ctx, sandbox.Command{Argv: argv, Dir: dir, Timeout: m.timeout})
	switch {
	case err != nil:
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case got.TimedOut:
		err = noScore{fmt.Errorf("%s did not end within %s", what, render.Duration(m.timeout))}
	case got.Exit != 0:
		said := strings.TrimSpace(cmp.Or(strings.TrimSpace(string(got.Stderr)), string(got.Stdout)))
		said = render.Cut(render.Line(m.redact(said[strings.LastIndexByte(said, '\n')+1:])), 200)
		err = noScore{errors.New(strings.TrimSuffix(fmt.Sprintf("%s ended with status %d: %s", what, got.Exit, said), ": "))}
	}
	return got, err
}

// maxProfile is how much of a profile the model sees, in bytes.
const maxProfile = 8 << 10

// profiled returns the beginning of what the profile prints of a copy of the tree. Without one
// the run goes on, and the user is told why.
func (m meter) profiled(ctx context.Context, c hone.Copies) (string, error) {
	if m.profile == "" {
		return "", nil
	}
	got, err := m.output(ctx, c, false, m.profile, "the profile")
	text := m.redact(strings.ToValidUTF8(string(got.Stdout), "\uFFFD"))
	switch {
	case errors.As(err, new(noScore)):
		return "", m.run.Notice(err.Error() + "; the model does without it")
	case err != nil || len(text) <= maxProfile:
		return text, err
	}
	text = text[:maxProfile]
	return text[:strings.LastIndexByte(text, '\n')+1], nil
}

func (m meter) first(ctx context.Context, c hone.Copies) (s history.Score, err error) {
	s = history.Score{Name: m.name, Lower: m.lower}
	done, err := m.begin(ctx)
	if err != nil {
		return s, err
	}
	defer done()
	var shown []values
	for i := 0; i <= m.wanted(s.New); i++ { // the first one warms up
		v, decide, err := m.once(ctx, c, false, m.line, s.Values)
		if err != nil {
			return s, atStart(err)
		}
		if s.Values = len(decide); i > 0 {
			s.New, shown = append(s.New, history.Median(decide)), append(shown, v)
		}
	}
	if m.confirm != "" {
		if _, _, err := m.once(ctx, c, false, m.confirm, 0); err != nil {
			return s, atStart(fmt.Errorf("the metric that confirms: %w", err))
		}
	}
	s.Samples = m.samples
	if s.Samples == 0 {
		s.Samples = manySamples
		if slices.Min(s.New) == slices.Max(s.New) {
			s.Samples = equalSamples
		}
	}
	s.Shown = others(m.name, shown)
	s.Best, s.Noise = summary(s.New)
	s.First = s.Best
	s.Profile, err = m.profiled(ctx, c)
	return s, err
}

// wanted returns how many samples the first measurement takes, after those that it has.
func (m meter) wanted(have []float64) int {
	switch {
	case m.samples > 0:
		return max(m.samples, firstSamples)
	case len(have) < firstSamples, slices.Min(have) == slices.Max(have) && len(have) == firstSamples:
		return firstSamples
	}
	return manySamples
}

// atStart returns the stop of a run whose metric gives no number at its start.
func atStart(err error) error {
	if !errors.As(err, new(noScore)) {
		return err
	}
	return &hone.Stop{Kind: hone.KindUsage, Why: "there is no score at the start: " + err.Error(), Next: hone.Next{First: "make the metric print its number", Verb: hone.NewRun}}
}

// compare measures the best so far and a change in turn, twice if the first time shows a gain
// (ruling I2).
func (m meter) compare(ctx context.Context, best history.Score, c hone.Copies) (s history.Score, err error) {
	s = best.Next()
	done, err := m.begin(ctx)
	if err != nil {
		return s, err
	}
	defer done()
	for range 2 {
		got, shown, err := m.inTurn(ctx, c, m.line, best)
		if err != nil {
			return s, notScored(&s, err)
		}
		s.Old, s.New, s.Shown = got[0], got[1], others(m.name, shown)
		value := history.Median(s.New)
		s.Value = &value
		if s.Why, s.P = m.verdict(s, s.Old, s.New, allAlpha/float64(max(1, m.run.Limits.MaxRounds()))); s.Why != "" {
			return s, nil
		}
	}
	if m.confirm != "" {
		got, _, err := m.inTurn(ctx, c, m.confirm, history.Score{Samples: max(best.Samples, firstSamples)})
		if errors.As(err, new(noScore)) {
			err = noScore{errors.New("the metric that confirms gave none")} // its output stays hidden
		}
		if err != nil {
			return s, notScored(&s, err)
		}
		worse := s
		worse.Lower = !s.Lower
		if why, _ := m.verdict(worse, got[0], got[1], allAlpha); why == "" {
			s.Why = "the metric that confirms is worse" // its numbers stay hidden
			return s, nil
		}
	}
	s.Kept = true
	s.Best, s.Noise = summary(s.New)
	s.Profile, err = m.profiled(ctx, c)
	return s, err
}

// notScored records why there is no score, or returns any other error.
func notScored(s *history.Score, err error) error {
	if !errors.As(err, new(noScore)) {
		return err
	}
	s.Why, s.Value = "no score: "+err.Error(), nil
	return nil
}

// inTurn measures the best so far and a change in turn, after a warm-up of each. shown are the
// numbers of the change.
func (m meter) inTurn(ctx context.Context, c hone.Copies, line string, best history.Score) (got [2][]float64, shown []values, err error) {
	for i := range 1 + best.Samples {
		for _, which := range [][2]int{{0, 1}, {1, 0}}[i%2] {
			v, decide, err := m.once(ctx, c, which == 0, line, best.Values)
			switch {
			case err != nil && which == 0 && errors.As(err, new(noScore)):
				return got, nil, fmt.Errorf("of the best so far: %w", err)
			case err != nil:
				return got, nil, err
			case i == 0:
			default:
				got[which] = append(got[which], history.Median(decide))
				if which == 1 {
					shown = append(shown, v)
				}
			}
		}
	}
	slices.Sort(got[0])
	slices.Sort(got[1])
	return got, shown, nil
}

// verdict returns why samples show no gain; empty if they do.
func (m meter) verdict(s history.Score, was, now []float64, alpha float64) (why string, p float64) {
	from, to := history.Median(was), history.Median(now)
	switch {
	case !s.Better(to, from):
		return "no gain", 1
	case s.Gain(from, to) < m.gain*100 && from != 0:
		return "less than the smallest gain that counts", 1
	case len(now) <= equalSamples:
		if was[0] != was[len(was)-1] || now[0] != now[len(now)-1] {
			return "the number varies, although it did not at the start: more samples can tell", 1
		}
		return "", 0
	}
	c := benchmath.AssumeNothing.Compare(benchmath.NewSample(slices.Clone(was), &benchmath.DefaultThresholds), benchmath.NewSample(slices.Clone(now), &benchmath.DefaultThresholds))
	if p = c.P / 2; p >= alpha { // the change is on the side that matters
		return fmt.Sprintf("within the noise, p = %.2g", p), p
	}
	return "", p
}

// summary returns the median of samples, and how far its confidence interval reaches from it.
func summary(samples []float64) (middle, noise float64) {
	slices.Sort(samples)
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(slices.Clone(samples), &benchmath.DefaultThresholds), 0.95)
	lo, hi := s.Lo, s.Hi
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		lo, hi = samples[0], samples[len(samples)-1]
	}
	if s.Center == 0 {
		return 0, 0
	}
	return s.Center, max(hi-s.Center, s.Center-lo) / math.Abs(s.Center)
}

func others(name string, samples []values) map[string]float64 {
	all := values{}
	for _, v := range samples {
		for other, numbers := range v {
			if other != name && !strings.HasSuffix(other, "/"+name) && len(all) < 20 {
				all[other] = append(all[other], numbers...)
			}
		}
	}
	shown := map[string]float64{}
	for other, numbers := range all {
		shown[other] = history.Median(numbers)
	}
	return shown
}

// lastCPU returns the processor that measures; empty if hone cannot choose one.
func lastCPU() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	if _, err := exec.LookPath("taskset"); err != nil {
		return ""
	}
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ := strings.Cut(rest, "\n")
	list = strings.TrimSpace(list)
	return list[strings.LastIndexAny(list, ",-")+1:]
}

// begin waits until no other run measures on this machine. It tells the user if it has to, and
// if other programs use the machine.
func (m meter) begin(ctx context.Context) (done func(), err error) {
	done, err = m.session.Measuring(ctx, func() error {
		return m.run.Notice("another run measures on this machine; this one waits until it has ended its measurement")
	})
	if err != nil {
		return nil, err
	}
	text, _ := os.ReadFile("/proc/loadavg") // Linux has it
	now, _, _ := strings.Cut(string(text), " ")
	if load, _ := strconv.ParseFloat(now, 64); load >= float64(runtime.NumCPU()) {
		err = m.run.Notice("other programs keep this machine busy, so the numbers vary more, and gains are harder to see")
	}
	if err != nil {
		done()
	}
	return done, err
}
