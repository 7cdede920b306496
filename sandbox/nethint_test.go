package sandbox_test

import (
	"hone/sandbox"
	"testing"
)

func TestWantsNetwork(t *testing.T) {
	for text, want := range map[string]bool{
		"curl: (6) Could not resolve host: example.org":                                                                                           true,
		"wget: unable to resolve host address 'example.org'":                                                                                      true,
		"ping: connect: Network is unreachable":                                                                                                   true,
		"fatal: unable to access 'https://example.org/x.git/': Could not resolve host: example.org":                                               true,
		"ssh: Could not resolve hostname example.org: Temporary failure in name resolution\nfatal: Could not read from remote repository.":        true,
		"go: example.org/x@v1.0.0: module lookup disabled by GOPROXY=off":                                                                         true,
		"go: example.org/x: Get \"https://proxy.golang.org/x\": dial tcp: lookup proxy.golang.org on 10.0.0.1:53: dial udp 10.0.0.1:53: connect:": true,
		"Get \"https://1.2.3.4/\": dial tcp 1.2.3.4:443: connect: permission denied":                                                              true,
		"npm error code ENOTCACHED\nnpm error request to https://registry.npmjs.org/x failed: cache mode is 'only-if-cached'":                     true,
		"npm error code EAI_AGAIN\nnpm error errno EAI_AGAIN\nnpm error request failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org":         true,
		"error: failed to get `x` as a dependency\nattempting to make an HTTP request, but --offline was specified":                               true,
		"urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>":                                                  true,
		"ERROR: Could not find a version that satisfies the requirement x\nERROR: No matching distribution found for x":                           true,
		"java.net.UnknownHostException: repo.maven.apache.org":                                                                                    true,
		"[ERROR] Cannot access central (https://repo.maven.apache.org/maven2) in offline mode":                                                    true,
		"> No cached version of com.example:x:1 available for offline mode.":                                                                      true,
		"    c.connect(a)\nPermissionError: [Errno 13] Permission denied\n":                                                                       true,
		"    c.connect(a)\n    ~~~~~~~~~^^^\nPermissionError: [Errno 13] Permission denied":                                                       true,
		">     s.connect((\"127.0.0.1\",5433))\nE     PermissionError: [Errno 13] Permission denied\n\ntest_x.py:4: PermissionError":              true,
		"urllib.error.URLError: <urlopen error [Errno 13] Permission denied>":                                                                     true,
		"PermissionError: [Errno 13] Connect call failed ('127.0.0.1', 80)":                                                                       true,
		"Error: connect EACCES 127.0.0.1:41969 - Local (0.0.0.0:0)":                                                                               true,
		"* Immediate connect fail for 127.0.0.1: Permission denied\n":                                                                             true,
		"bash: line 1: /dev/tcp/127.0.0.1/41969: Permission denied":                                                                               true,
		"-e:1:in `initialize': Permission denied - connect(2) for \"127.0.0.1\" port 41969 (Errno::EACCES)":                                       true,
		"psql: error: connection to server at \"127.0.0.1\", port 5433 failed: Permission denied":                                                 true,
		"java.net.BindException: Permission denied\n\tat java.base/sun.nio.ch.Net.connect0(Native Method)":                                        true,

		"": false,
		"    s.connect('/run/x.sock')\nPermissionError: [Errno 13] Permission denied":                          false,
		"    c.connect(a)\nConnectionRefusedError: [Errno 111]\nPermissionError: [Errno 13] Permission denied": false,
		"    c.connect(a)\nPermissionError: [Errno 13] Permission denied: '/x'":                                false,
		"dial unix /run/x.sock: connect: permission denied":                                                    false,
		"java.net.BindException: Permission denied\n\tat java.base/sun.nio.ch.Net.bind0(Native Method)":        false,
		"Permission denied - connect(2) for /run/x.sock (Errno::EACCES)":                                       false,
		"dial tcp 127.0.0.1:8080: connect: connection refused":                                                 false,
		"<urlopen error [Errno 111] Connection refused>":                                                       false,
		"psql: error: connection to server on socket failed":                                                   false,
		"--- FAIL: TestNetwork (0.00s)":                                                                        false,
		"cat: /etc/shadow: Permission denied":                                                                  false,
		"main.go:3: undefined: net.Dial":                                                                       false,
		"AssertionError: expected the host to be resolved":                                                     false,
		"connect.go:12: wrong number of arguments\nx: exit status 1":                                           false,
		"open /x: permission denied\nconnect failed\nfoo: EPERMANENT":                                          false,
	} {
		if got := sandbox.WantsNetwork(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
