package reader

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	pyFrame     = lazyregexp.New(`^(?:E\s)?[\s|]*File "([^"\n]+)", line (\d{1,9})`)
	pytestFrame = lazyregexp.New(`^(?:[A-Za-z]:)?([^\s:][^:\n]*\.py):(\d{1,9}):(?: |$)`)
	jsFrame     = lazyregexp.New(`(?:^|[\s(])((?:file://)?[^\s()]+\.(?:[cm]?[jt]sx?|vue|svelte)):(\d{1,9}):\d{1,9}\)?,?$`)
	javaFrame   = lazyregexp.New(`^\s*at (?:[\w.@-]*/)*([\w$.]+)\.[\w$<>]+\((\w+\.(?:java|kt|scala|groovy)):(\d{1,9})\)`)
	rustPanic   = lazyregexp.New(`panicked at (?:'.*', )?([^\s:'][^:\n]*\.rs):(\d{1,9}):\d{1,9}`)
	perlPlace   = lazyregexp.New(`\b(?:at|file) (\S+?),? line (\d{1,9})\b`)
	anyPlace    = lazyregexp.New(`(?:^|[\s('"\[])((?:[A-Za-z]:[\\/]|\.{0,2}/)?[\w@~+][\w@~+./\\-]*\.[A-Za-z]\w{0,9}):(\d{1,9})\b`)
)

// The file is empty if there is none. Python's stacks end with the failure, others start with it.
func locate(text string) (file string, line int) {
	var last, first, other [2]string
	forEachLine(text, func(l string) {
		if len(l) > 4<<10 {
			return
		}
		if m := pyFrame.FindStringSubmatch(l); m != nil && isUserFile(m[1]) {
			last = [2]string{m[1], m[2]}
		} else if m := pytestFrame.FindStringSubmatch(l); m != nil && isUserFile(m[1]) {
			last = [2]string{m[1], m[2]}
		}
		if first[0] == "" {
			first = firstFrame(l)
		}
		if other[0] == "" && first[0] == "" && last[0] == "" {
			other = somePlace(l)
		}
	})
	for _, p := range [][2]string{last, first, other} {
		if p[0] != "" {
			return strings.TrimPrefix(p[0], "file://"), number(p[1])
		}
	}
	return "", 0
}

// The stack starts with the failure.
func firstFrame(line string) [2]string {
	if m := jsFrame.FindStringSubmatch(line); m != nil && isUserFile(m[1]) {
		return [2]string{m[1], m[2]}
	}
	if m := javaFrame.FindStringSubmatch(line); m != nil && isUserClass(m[1]) {
		dir := strings.ReplaceAll(m[1][:strings.LastIndexByte("."+m[1], '.')], ".", "/")
		return [2]string{strings.TrimPrefix(dir+"/"+m[2], "/"), m[3]}
	}
	if m := rustPanic.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "/rustc/") {
		return [2]string{m[1], m[2]}
	}
	return [2]string{}
}

func somePlace(line string) [2]string {
	if m := perlPlace.FindStringSubmatch(line); m != nil && isUserFile(m[1]) {
		return [2]string{m[1], m[2]}
	}
	if m := anyPlace.FindStringSubmatch(line); m != nil && isUserFile(m[1]) {
		return [2]string{m[1], m[2]}
	}
	return [2]string{}
}

func userFrames(stack string) (frames []string) {
	forEachLine(stack, func(l string) {
		if m := jsFrame.FindStringSubmatch(l); m != nil && isUserFile(m[1]) {
			frames = append(frames, strings.TrimSpace(l))
		}
	})
	return frames
}

// foreignFrame is a frame of a runtime or an installed package in a JavaScript stack.
var foreignFrame = lazyregexp.New(`^\s*at (?:.*[ (])?(?:node:|internal/|<anonymous>\)|\S*/node_modules/|async Promise\.all)`)

// Runtimes and installed packages are foreign.
func withoutForeign(text string) string {
	if !strings.Contains(text, " at ") && !strings.Contains(text, "\tat ") {
		return text
	}
	lines := strings.Split(text, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool {
		m := javaFrame.FindStringSubmatch(l)
		return m != nil && !isUserClass(m[1]) || foreignFrame.MatchString(l)
	}), "\n")
}

func isUserFile(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(file, "<") || strings.HasPrefix(file, "node:") || strings.HasPrefix(file, "internal/") {
		return false
	}
	for _, dir := range []string{"/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/pkg/mod/", "/.cargo/", "/rustc/", "/.rustup/", "/gems/", "/libsanitizer/", "/compiler-rt/", "/sysdeps/", "/csu/", "/usr/include/"} {
		if strings.Contains("/"+file, dir) {
			return false
		}
	}
	return true
}

func isUserClass(class string) bool {
	for _, p := range []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "scala.", "groovy.", "org.junit.", "junit.", "org.testng.", "org.gradle.", "org.apache.maven.", "org.assertj.", "org.hamcrest.", "org.mockito.", "org.opentest4j.", "org.codehaus.groovy.", "org.spockframework.", "worker.org.gradle."} {
		if strings.HasPrefix(class, p) {
			return false
		}
	}
	return true
}
