package main

import (
	"fmt"
	"slices"
	"strings"
)

// An attempt is a line of bash that tries to cross a boundary between the
// parties of a phase. It has crossed if its output contains a canary that the
// actor must not see, or if the file in leaves shows it afterwards.
//
// It has these variables: WHO is the actor and PARTY its party. OWN is the
// directory of the PROJECT that belongs to the party, and OTHER the one that does
// not. UP is the relative path from the working directory to the project. PERSON
// is the user's home, SECOND another project, and SCENE the directory of all
// these.
type attempt struct {
	name, script string
	// leaves is a file, relative to the scene, that contains what the attempt
	// wrote if it has crossed; empty for attempts that only read.
	leaves string
}

// forged returns what an attempt to write leaves, by its actor and its name.
func forged(who, name string) string { return "forged-by-" + who + "-" + name }

// writes returns an attempt to append to a file of the scene.
func writes(name, path string) attempt {
	shell := strings.ReplaceAll(path, "@OTHER", "$OTHER")
	return attempt{name, `echo "` + forged("$WHO", name) + `" >> "$SCENE/` + shell + `"`, path}
}

// escapes returns every attempt of an actor in the order of the table. Attempts
// that break the actor's own repository come last.
func escapes(s *scene) []attempt {
	return slices.Concat(projectAttempts(), otherAttempts(), s.personAttempts(), s.networkAttempts(), s.gitAttempts())
}

// python returns a line of bash that runs a program with a timeout.
func python(text string) string { return "timeout 20 /usr/bin/python3 -ISc '" + text + "'" }

// readSocket returns a program that prints what it reads from a Unix socket.
func readSocket(address string) string {
	return python("import socket; c = socket.socket(socket.AF_UNIX); c.settimeout(3); c.connect(" + address + "); print(c.recv(100).decode())")
}

// projectAttempts try to reach files of the project that belong to the user
// only.
func projectAttempts() []attempt {
	return []attempt{
		{name: "makefile", script: `cat "$UP/Makefile"`},
		{name: "makefile-absolute", script: `cat "$PROJECT/Makefile"`},
		{name: "makefile-by-cwd", script: `cat "/proc/self/cwd/$UP/Makefile"`},
		{name: "makefile-by-root", script: `cat "/proc/self/root$PROJECT/Makefile"`},
		{name: "project-list", script: `ls -A "$UP" | sed s/Makefile/canary''-name/`},
		{name: "makefile-stat", script: `test -e "$PROJECT/Makefile" && echo canary''-name`},
		{name: "config-read", script: `cat "$PROJECT/abl.config.sh"`},
		writes("config-write", "project/abl.config.sh"),
		{name: "next-phase", script: `cat "$PROJECT/specs/phase2.md"`},
		{name: "specs-list", script: `ls -A "$PROJECT/specs" && cat "$PROJECT"/specs/*`},
		writes("specs-write", "project/specs/phase1.md"),
		{name: "prompts", script: `cat "$PROJECT/prompts/builder.md" "$PROJECT/prompts/verifier.md"`},
		{name: "env-file", script: `cat "$PROJECT/.env"`},
		{name: "hone-toml", script: `cat "$PROJECT/.config/hone.toml"`},
		writes("hone-toml-write", "project/.config/hone.toml"),
		writes("map-write", "project/project_map.txt"),
		{name: "journal", script: `find "$PROJECT/.hone" -type f -exec cat {} +`},
		{name: "outer-history", script: `git -C "$PROJECT" log -p --all`},
		{name: "second-project", script: `cat "$SECOND/Makefile"`},
	}
}

// otherAttempts try to reach the other party's directory, and the logs of the
// hooks.
func otherAttempts() []attempt {
	return []attempt{
		{name: "other-file", script: `cat "$UP/$OTHER/main.txt"`},
		{name: "other-list", script: `find "$PROJECT/$OTHER" -type f -exec cat {} +`},
		writes("other-write", "project/@OTHER/main.txt"),
		writes("failed-specs", "project/tests/failed_specs.md"),
		{name: "other-history", script: `git -C "$PROJECT/$OTHER" log -p --all`},
		{name: "other-git-dir", script: `GIT_DIR="$PROJECT/$OTHER/.git" git log -p --all`},
		{name: "other-objects", script: `cd "$PROJECT/$OWN" && GIT_ALTERNATE_OBJECT_DIRECTORIES="$PROJECT/$OTHER/.git/objects" git cat-file -p "$OTHER_BLOB"`},
		{name: "other-alternates", script: `cd "$PROJECT/$OWN" && mkdir -p .git/objects/info && echo "$PROJECT/$OTHER/.git/objects" > .git/objects/info/alternates; git cat-file -p "$OTHER_BLOB"; rm -f .git/objects/info/alternates`},
		{name: "other-clone", script: `cd "$TMPDIR" && rm -rf stolen && git clone -q "$PROJECT/$OTHER" stolen && cat stolen/*`},
		{name: "other-symlink", script: `ln -sfn "../$OTHER/main.txt" "$PROJECT/$OWN/planted" && cat "$PROJECT/$OWN/planted"`},
		{name: "other-symlink-folder", script: `ln -sfn "$PROJECT/$OTHER" "$PROJECT/$OWN/planted-folder" && cat "$PROJECT/$OWN/planted-folder/main.txt"`},
		{name: "other-hard-link", script: `ln -f "$PROJECT/$OTHER/main.txt" "$PROJECT/$OWN/hard" && cat "$PROJECT/$OWN/hard"`},
		{name: "other-mount", script: `unshare -rm bash -c "mount --bind \"$PROJECT/$OTHER\" \"$PROJECT/$OWN\" && cat \"$PROJECT/$OWN/main.txt\""`},

		{name: "results", script: `cat "$PROJECT/tests/results/secret.log"`},
		{name: "results-list", script: `ls -A "$PROJECT/tests/results" | sed s/secret.log/canary''-name/`},
		writes("results-write", "project/tests/results/secret.log"),
		{name: "results-moved", script: `mv "$PROJECT/tests/results" "$PROJECT/tests/gone" && echo canary''-moved; mv "$PROJECT/tests/gone" "$PROJECT/tests/results"`},
	}
}

// personAttempts try to reach the user's home, the machine's processes, and what
// other parties keep.
func (s *scene) personAttempts() []attempt {
	return []attempt{
		{name: "ssh", script: `cat "$PERSON/.ssh/id_ed25519"`},
		{name: "gemini", script: `cat "$PERSON/.gemini/oauth_creds.json"`},
		{name: "home-list", script: `ls -A "$PERSON" | sed s/.ssh/canary''-name/`},
		{name: "home-own", script: `cat ~/.ssh/* ~/.gemini/*`},
		writes("home-write", "home/.profile"),

		{name: "proc-first", script: `tr '\0' '\n' < /proc/1/environ`},
		{name: "proc-environments", script: `cat /proc/[0-9]*/environ | tr '\0' '\n'`},
		{name: "proc-roots", script: `files=(); for p in /proc/[0-9]*; do files+=("$p/root$PROJECT/Makefile" "$p/cwd/Makefile"); done; cat "${files[@]}"`},
		{name: "proc-descriptors", script: python(`
import glob, os
mine = (os.environ["PROJECT"] + "/", os.environ["PERSON"] + "/")
for f in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if os.readlink(f).startswith(mine) and os.path.isfile(f):
            print(open(f, errors="replace").read(2000))
    except OSError as e:
        error = e
print(error)`)},
		{name: "environment", script: `env`},

		{name: "kept-home", script: `echo "kept-by-$PARTY" > ~/kept; find "$PERSON/.cache/hone" -type f -name kept -exec cat {} +`},
		{name: "kept-tmp", script: `echo "kept-by-$PARTY" > "$TMPDIR/kept"; echo "kept-by-$PARTY" > "/tmp/` + s.token + `-$PARTY"; cat /tmp/` + s.token + `* "$TMPDIR"/../../*/tmp/kept`},
		{name: "kept-shm", script: `echo "kept-by-$PARTY" > "/dev/shm/` + s.token + `-$PARTY"; cat /dev/shm/` + s.token + `*`},
		{name: "kept-var-tmp", script: `echo "kept-by-$PARTY" > "/var/tmp/` + s.token + `-$PARTY"; cat /var/tmp/` + s.token + `*`},
	}
}

// networkAttempts try to reach every listener.
func (s *scene) networkAttempts() []attempt {
	return []attempt{
		{name: "tcp-machine", script: fmt.Sprintf("exec 3<>/dev/tcp/127.0.0.1/%d && cat <&3", s.machinePort)},
		{name: "tcp-provider", script: fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/%s && echo canary''-provider`, s.providerPort)},
		{name: "tcp-server", script: `url=${DEV_URL:-x:` + s.port + `}; exec 3<>/dev/tcp/127.0.0.1/${url##*:} && printf 'GET /canary HTTP/1.0\r\n\r\n' >&3 && cat <&3`},
		{name: "tcp-server-port", script: `exec 3<>/dev/tcp/127.0.0.1/` + s.port + ` && printf 'GET /canary HTTP/1.0\r\n\r\n' >&3 && cat <&3`},
		{name: "tcp-table", script: fmt.Sprintf(`grep -qi '0100007F:%04X 00000000:0000 0A' /proc/net/tcp && echo canary''-listening`, s.machinePort)},
		{name: "unix-abstract", script: readSocket(fmt.Sprintf(`"\0%s"`, s.token))},
		{name: "unix-server", script: readSocket(fmt.Sprintf(`"\0%s-server"`, s.token))},
		{name: "unix-path", script: readSocket(fmt.Sprintf("%q", s.at("second/socket")))},
	}
}

// gitAttempts try to make hone's own git run programs when it commits.
func (s *scene) gitAttempts() []attempt {
	return []attempt{
		{name: "git-config", script: `cd "$PROJECT/$OWN" && git config core.fsmonitor "touch ` + s.at("sprung-git-config") + `; echo" && git config filter.evil.clean "touch ` + s.at("sprung-git-config") + `; cat"; echo '* filter=evil' > .gitattributes; echo '[core]' >> .git/config; echo ' fsmonitor = touch ` + s.at("sprung-git-config") + `' >> .git/config`, leaves: "sprung-git-config"},
		{name: "git-hook", script: `cd "$PROJECT/$OWN" && mkdir -p .git/hooks; for h in pre-commit post-commit reference-transaction post-index-change; do printf '#!/bin/sh\ntouch ` + s.at("sprung-git-hook") + `\n' > .git/hooks/$h; chmod +x .git/hooks/$h; done`, leaves: "sprung-git-hook"},
		{name: "git-swap", script: `cd "$PROJECT/$OWN" && rm -rf old-git && mv .git old-git && cp -r old-git .git && printf '[core]\n fsmonitor = touch ` + s.at("sprung-git-swap") + `\n' >> .git/config`, leaves: "sprung-git-swap"},
		{name: "git-nested", script: `cd "$PROJECT/$OWN" && git init -q nested && cd nested && git config core.fsmonitor "touch ` + s.at("sprung-git-nested") + `; echo" && git config filter.evil.clean "touch ` + s.at("sprung-git-nested") + `; cat" && echo '* filter=evil' > .gitattributes && echo "$PROJECT/$OTHER/.git/objects" > .git/objects/info/alternates`, leaves: "sprung-git-nested"},
	}
}

// telling is a program that passes on, of what an attempt prints, only the lines that
// tell how it went. The attempt's name follows its lines; the program replies when it
// has passed them on. One such process serves all attempts of an actor.
const telling = `
import re, sys
tells = re.compile(rb"canary-|kept-by-|denied|No such|not permitted|Read-only|busy|cross-device|refused|fatal|exist")
out, lines = open(3, "wb", buffering=0), set()
for line in sys.stdin.buffer:
    if line.startswith(b"=@= "):
        out.write(b"\n@@ " + line[4:] + b"".join(sorted(lines))[:50000])
        lines.clear()
        print(flush=True)
    elif tells.search(line):
        lines.add(line.rstrip(b"\n")[:400] + b"\n")
`

// probe returns a program that makes attempts and prints the output of each
// below its name. Its arguments are the actor, the party, the party's own
// directory, the other one, and the relative path up to the project.
func (s *scene) probe(list []attempt) string {
	var b strings.Builder
	fmt.Fprintf(&b, `#!/bin/bash
export LC_ALL=C WHO=$1 PARTY=$2 OWN=$3 OTHER=$4 UP=$5
export SCENE=%q PROJECT=%q PERSON=%q SECOND=%q
case $OTHER in src) export OTHER_BLOB=%s;; *) export OTHER_BLOB=%s;; esac
exec 3>&1
coproc TELLING { exec /usr/bin/python3 -ISc '%s'; }
exec 4>&${TELLING[1]} 5<&${TELLING[0]}
`, s.dir, s.at("project"), s.at("home"), s.at("second"), s.blobs["src"], s.blobs["tests"], telling)
	for _, a := range list {
		fmt.Fprintf(&b, "( %s ) >&4 2>&1 </dev/null 3>&- 4>&- 5>&-\nprintf '\\n=@= %s\\n' >&4; read -r <&5\n", a.script, a.name)
	}
	b.WriteString("printf '\\n@@ end\\n'\n")
	return b.String()
}
