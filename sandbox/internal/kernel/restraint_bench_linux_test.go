package kernel

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hone/sandbox"
	"hone/sandbox/internal/runtest"
)

// callsName is the name of the test binary when it times system calls.
const callsName = "hone-calls"

// timeCalls prints how many nanoseconds each of some system calls takes.
func timeCalls() {
	const times = 200_000
	took := map[string]float64{}
	for name, call := range map[string]func(){
		"getppid": func() { _, _, _ = unix.RawSyscall(unix.SYS_GETPPID, 0, 0, 0) },
		// The filter inspects the arguments of these calls.
		"ioctl":  func() { _, _, _ = unix.RawSyscall(unix.SYS_IOCTL, ^uintptr(0), unix.TCGETS, 0) },
		"sendto": func() { _, _, _ = unix.RawSyscall6(unix.SYS_SENDTO, ^uintptr(0), 0, 0, 0, 0, 0) },
	} {
		began := time.Now()
		for range times {
			call()
		}
		took[name] = float64(time.Since(began).Nanoseconds()) / times
	}
	must(0, json.NewEncoder(os.Stdout).Encode(took))
}

// BenchmarkRestraint measures the cost of the filter per system call, and of the
// restraint per command.
func BenchmarkRestraint(b *testing.B) {
	u := runtest.Users()[0]
	binary := runtest.TestBinary(b, u)
	for name, r := range map[string]restraint{"free": behind(sandbox.NoWall), "walls": behind(sandbox.Hidden, sandbox.Entry{Path: "/", Access: sandbox.AccessRead, Dir: true}), "strict": landlocked()} {
		b.Run(name, func(b *testing.B) {
			sums := map[string]float64{}
			for b.Loop() {
				got := restrainAs(b, u, binary, restrained{Under: r, Argv: []string{callsName}, Dir: "/"})
				var took map[string]float64
				if err := json.Unmarshal([]byte(got.Output), &took); err != nil {
					b.Fatalf("%+v", got)
				}
				took["restraint"] = float64(got.Took.Nanoseconds())
				for what, ns := range took {
					sums[what] += ns
				}
			}
			for what, ns := range sums {
				b.ReportMetric(ns/float64(b.N), "ns/"+what)
			}
		})
	}
}
