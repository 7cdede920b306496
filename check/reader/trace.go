package reader

import (
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

var (
	pyFrame     = lazyregexp.New(`^(?:E\s)?[\s|]*File "(?P<file>[^"\n]+)", line (?P<line>\d{1,9})`)
	pytestFrame = lazyregexp.New(`^(?:[A-Za-z]:)?(?P<file>[^\s:][^:\n]*\.py):(?P<line>\d{1,9}):(?: |$)`)
	jsFrame     = lazyregexp.New(`(?:^|[\s(])(?:file://)?(?P<file>[^\s()]+\.(?:[cm]?[jt]sx?|vue|svelte)):(?P<line>\d{1,9}):\d{1,9}\)?,?$`)
	javaFrame   = lazyregexp.New(`^\s*at (?:[\w.@-]*/)*(?P<text>[\w$.]+)\.[\w$<>]+\((?P<file>\w+\.(?:java|kt|scala|groovy)):(?P<line>\d{1,9})\)`)
	rustPanic   = lazyregexp.New(`panicked at (?:'.*', )?(?P<file>[^\s:'][^:\n]*\.rs):(?P<line>\d{1,9}):\d{1,9}`)
	perlPlace   = lazyregexp.New(`\b(?:at|file) (?P<file>\S+?),? line (?P<line>\d{1,9})\b`)
	anyPlace    = lazyregexp.New(`(?:^|[\s('"\[])(?P<file>(?:[A-Za-z]:[\\/]|\.{0,2}/)?[\w@~+][\w@~+./\\-]*\.[A-Za-z]\w{0,9}):(?P<line>\d{1,9})\b`)
)

// placed are lines with a place, by how sure they are. Python's stacks end with the failure, others start with it.
func placed() [3][]*lazyregexp.Regexp {
	return [3][]*lazyregexp.Regexp{{pyFrame, pytestFrame}, {jsFrame, javaFrame, rustPanic}, {perlPlace, anyPlace}}
}

// The file is empty if there is none.
func locate(text string) (file string, line int) {
	var at [3]item
	forEachLine(text, func(l string) {
		if len(l) > 4<<10 {
			return
		}
		for kind, expressions := range placed() {
			if kind > 0 && at[kind].file != "" || kind == 2 && at[0].file+at[1].file != "" {
				continue
			}
			for _, re := range expressions {
				i, ok := matched(re, l)
				if class := i.text; ok && class != "" {
					ok = isUserClass(class)
					i.file = strings.TrimPrefix(strings.ReplaceAll(class[:strings.LastIndexByte("."+class, '.')], ".", "/")+"/"+i.file, "/")
				}
				if ok && isUserFile(i.file) {
					at[kind] = i
					break
				}
			}
		}
	})
	for _, i := range at {
		if i.file != "" {
			return i.file, i.line
		}
	}
	return "", 0
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
		i, ok := matched(javaFrame, l)
		return ok && !isUserClass(i.text) || foreignFrame.MatchString(l)
	}), "\n")
}

func isUserFile(file string) bool {
	file = strings.ReplaceAll(file, `\`, "/")
	if strings.HasPrefix(file, "<") || strings.HasPrefix(file, "node:") || strings.HasPrefix(file, "internal/") {
		return false
	}
	for _, dir := range []string{"/node_modules/", "/site-packages/", "/dist-packages/", "/lib/python", "/pkg/mod/", "/vendor/", "/.cargo/", "/rustc/", "/.rustup/", "/gems/", "/libsanitizer/", "/compiler-rt/", "/sysdeps/", "/csu/", "/usr/include/"} {
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
