package sandbox

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// WantsNetwork reports whether the output of a failed command suggests that it
// needed the network. It knows the messages of resolvers, common programs and
// package managers, behind walls without a network or in their offline modes. A
// closed port of this machine does not count. It is a guess: use it
// only for hints.
func WantsNetwork(output string) bool {
	text := strings.ToLower(output)
	signs := []string{ // in lower case
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
		"connect eacces",
		"connect eperm",
		"[errno 13] connect call failed",
		"urlopen error [errno 13]",
		"establish a new connection: [errno 13]",
		// Programs.
		"unable to access 'http",
		"could not read from remote repository",
		// Package managers in their offline modes, or after retries.
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
	wants := func(sign string) bool { return strings.Contains(text, sign) }
	return slices.ContainsFunc(signs, wants) || refusedElsewhere.MatchString(text)
}

// refusedElsewhere matches a connection that this machine itself refused, such as
// "dial tcp 1.2.3.4:443: connect: permission denied", or the end of a traceback. Landlock also refuses those to a
// server that the command itself has started.
var refusedElsewhere = lazyregexp.New(`((dial tcp|connect to|connecting to|connection to server at|connect) |/dev/tcp/)[^\n]*: (permission denied|operation not permitted|eacces|eperm)\b|` +
	`permission denied - connect\(2\) for [^/\n]|exception: permission denied\n\s+at \S*net\.connect|` +
	`connect\([^/\n]*\n([e\s~^]*\n)?(e\s+)?permissionerror: \[errno 13\] permission denied(\n|$)`)
