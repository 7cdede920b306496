package crashtest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// FreePort returns a port of this machine at which no program listens. Until the test
// ends, no other test gets it, also in other processes. It is below the ports that the
// kernel gives to clients, so that no connection takes it.
func FreePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		// An abstract socket on Linux, and elsewhere a file of this name.
		reserved, err := net.Listen("unix", "@hone-test-port-"+port)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			t.Cleanup(func() { reserved.Close() })
			return port
		}
		reserved.Close()
	}
	t.Fatal("there is no free port")
	return ""
}
