package sandbox

import (
	"regexp"
	"strings"
	"sync"
)

// WantsNetwork reports whether what a failed command printed looks as if it
// missed the network, so that a person can be told of --net. It knows what
// resolvers, common programs and package managers say, behind walls without a
// network or in their own offline modes. It takes a port of this machine on
// which nobody listens for no sign of it. It can be wrong both ways: use it
// for hints alone.
func WantsNetwork(output string) bool {
	text := strings.ToLower(output)
	for _, sign := range netSigns() {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return refusedElsewhere().MatchString(text)
}

// netSigns are what stands in the output, in small letters.
func netSigns() []string {
	return []string{
		// Resolvers and sockets: the C library, Go, Python, Node, Java, Rust.
		"could not resolve host",
		"temporary failure in name resolution",
		"temporary failure resolving",
		"name or service not known",
		"nodename nor servname provided",
		"unable to resolve host address",
		"failed to lookup address information",
		"dns error:",
		"no such host",
		"dial udp",
		"network is unreachable",
		"network unreachable",
		"no route to host",
		"getaddrinfo enotfound",
		"getaddrinfo eai_again",
		"enetunreach",
		"unknownhostexception",
		"urlopen error",
		// Programs.
		"unable to access 'http",
		"could not read from remote repository",
		// Package managers that were told to stay offline, or gave up.
		"disabled by goproxy=off",
		"module lookup disabled",
		"enotcached",
		"only-if-cached",
		"--offline was specified",
		"--offline flag",
		"cannot access the network",
		"in offline mode",
		"for offline mode",
		"no matching distribution found for",
		"network connectivity is disabled",
		"failed to download from",
		"failed to fetch http",
	}
}

// refusedElsewhere finds a connection that was refused by the machine itself,
// and not by somebody on a loopback address: "dial tcp 1.2.3.4:443: connect:
// permission denied".
var refusedElsewhere = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(dial tcp|connect to|connecting to|connect) [^\n]*: (permission denied|operation not permitted|eacces|eperm)\b`)
})
