package judge_test

import (
	"strings"
	"testing"

	"hone/check/judge"
	"hone/workspace"
)

func TestOf(t *testing.T) {
	for command, c := range map[string]struct{ judges, others string }{
		"go test ./...":                              {"a_test.go x/testdata/in go.work x/GO.WORK .golangci.yml go.mod x/go.mod vendor/a/b.go Makefile scripts/test check.sh .env", "a.go go.sum vendors/a.go a/vendor/b.go"},
		"make test":                                  {"GNUmakefile Makefile x/makefile rules.mk tests/a.c", "a.c"},
		"make -f ci/build.make":                      {"ci/build.make Makefile", "build.make"},
		"go test ./... -tags x":                      {"internal/testutil/eq.go storetest/s.go test_helpers/a.go svc/vendor/example.com/assert/a.go svc/vendor/modules.txt", "internal/util/eq.go contest.go vendors/x.y/z/a.go"},
		"node --test":                                {"test.js src/test.mjs test-add.js a_spec.ts a.spec.ts", "latest.js attest.js spec.js"},
		"python3 -m unittest discover":               {"testcalc.py test.py argparse.py src/difflib.py lib/optparse.rb", "backend/argparse.py src/calc.py attest.py src/app/types.py"},
		"cd backend && python3 -m unittest":          {"backend/argparse.py backend/src/difflib.py argparse.py", "frontend/argparse.py backend/app/types.py"},
		"PYTHONPATH=app:x python3 -m unittest":       {"app/queue.py x/re.py", "app/calc.py y/re.py"},
		"export PYTHONPATH=app; pytest":              {"app/queue.py", "app/calc.py"},
		"ruby -Irb -I rc rb/test_a.rb":               {"rb/optparse.rb rc/set.rb lib/io/console.rb", "rd/set.rb rb/sum.rb"},
		"prove":                                      {".proverc Makefile.PL configure Makefile.in", "lib/A.pm configure.ac"},
		"rspec":                                      {".rspec-local", "a.rb"},
		"bazel test //...":                           {".bazelrc defs/x.bzl BUILD", "a.c"},
		"pipenv run test":                            {"Pipfile pixi.toml", "Pipfile.lock"},
		"nx test":                                    {"apps/a/project.json", "a/data.json"},
		"isort --check .":                            {".isort.cfg", "test_a.py"},
		"just test":                                  {"justfile .justfile Makefile", "main.c"},
		"./check.sh":                                 {"check.sh tests/a", "src/check.go"},
		"sh -eu ci/check.sh main.c":                  {"ci/check.sh", "main.c"},
		"cd sub && ./check.sh && ../x/b.sh":          {"sub/check.sh x/b.sh", "a.sh"},
		"bash -c './check.sh && pytest'":             {"check.sh conftest.py", "main.py"},
		". ./.ci/env.sh; ./.check":                   {".ci/env.sh .check", "env.sh check"},
		"./a\\ b.sh":                                 {"a b.sh", "b.sh a"},
		"env CI=1 timeout -k 5 60s ./check.sh":       {"check.sh", "main.go"},
		"X=1 ./check.sh":                             {"check.sh", "main.go"},
		"python3 ./verify.py":                        {"verify.py", "verify/a.py"},
		"timeout 9 python3 -u run_checks.py main.py": {"run_checks.py", "main.py"},
		"node ./tools/verify.js":                     {"tools/verify.js", "verify.css"},
		"node validate":                              {"validate.js validate/index.js validate.mjs", "valid.js"},
		"perl t-verify.pl":                           {"t-verify.pl", "Verify.pm"},
		"python3.11 -m checks.unit src":              {"checks/unit.py checks/unit/__main__.py", "src/a.py"},
		"python3 -m checks":                          {"checks/__main__.py checks.py", "src/check.txt"},
		"go run ./cmd/verify":                        {"cmd/verify/main.go", "cmd/server/main.go"},
		"bun run e2e.ts && ruby acceptance.rb":       {"e2e.ts acceptance.rb", "app.ts"},
		"deno run -A checkAll.ts":                    {"checkAll.ts", "all.ts"},
		"Rscript validation.R":                       {"validation.R", "model.R"},
		"for s in c.sh d.sh; do sh $s; done":         {"c.sh d.sh", "e.sh"},
		"for f in a b; do echo $f; done; ./x":        {"x", "a b"},
		"for f in *.run; do sh $f || exit 1; done":   {"a.run x/b.run", "a.runs"},
		"for s in a b; do sh st/$s.run; done":        {"st/a.run x/st/b.run", "st/a.c c.run"},
		"for f in *.run; do ./$f; done":              {"a.run", "a.c"},
		"for d in a b; do $d/x.run; done":            {"a/x.run", "a/y.run"},
		"eval \"$(cat x.run)\"":                      {"x.run", "y.run"},
		"bash -c \"$(cat x.run)\"":                   {"x.run", "y.run"},
		"S=x; sh $S.run":                             {"x.run", "y.run"},
		"PY=python3; $PY main.py":                    {"test_a.py", "main.py"},
		"for i in 1 2; do python3 main.py $i; done":  {"test_a.py", "main.py"},
		"sh ./*.run":                                 {"a.run", "run"},
		"find . -name x.run -exec sh {} +":           {"x.run a/x.run", "y.run"},
		"find . -name '*.run' -exec {} \\;":          {"y.run", "run"},
		"ls *.run | xargs -n1 sh":                    {"a.run", "b.c"},
		"trap ./x.run EXIT":                          {"x.run", "EXIT"},
		"sh \"$(echo x.run)\"":                       {"x.run", "y.run"},
		"printf './x.run\\n' | sh":                   {"x.run", "n"},
		"awk -f tools/check.awk a.txt":               {"tools/check.awk", "a.txt b.awk"},
		"sed -nf check.sed a.txt":                    {"check.sed", "a.txt"},
		"cat verify.py | python3 -":                  {"verify.py", "main.py"},
		"cat verify.py | python3 - main.py":          {"verify.py", "main.py"},
		"printf \"./x.run\\n\" | sh":                 {"x.run", "n"},
		"./a\\nice.sh && ./\"b c.sh\"":               {"anice.sh", "a"},
		"python3 < verify.py":                        {"verify.py", "main.py"},
		"node --import=./check.mjs x.js":             {"check.mjs", "x.js"},
		"bc -q check.bc":                             {"check.bc", "a.bc"},
		"gcc -o test tests.c a.c && ./test":          {"tests.c", "a.c"},
		"python3 linters.py && ruby selfcheck.rb":    {"linters.py selfcheck.rb", "a.py"},
		// Programs under test
		"python3 main.py < in | diff - want": {"test_a.py", "main.py want"},
		"node server.js & curl localhost:1":  {"a.test.js", "server.js"},
		"ruby latest.rb && perl contest.pl":  {"a_spec.rb", "latest.rb contest.pl"},
		"python3 -m app.main --check":        {"test_a.py", "app/main.py"},
		"python3 -c 'import check'":          {"test_a.py", "check.py"},
		"go run . < in.txt":                  {"a_test.go", "main.go in.txt"},
		"php artisan migrate":                {"ATest.php", "artisan"},
		// Tests of one file
		"./t":                                    {"tests.c test.c unittest.cpp selftest.c foo-test.c foo_tests.cc test.rb test.lua tests.php src/test-io.c test_x.nim", "test.md spec.md tests.txt contest.c latest.rb attest.lua cmd/test.go"},
		"python3 main.py":                        {"test_a.py conftest.py pytest.ini unittest.py x.pth sitecustomize.py", "main.py calc.py"},
		"python3 -m unittest":                    {"argparse.py traceback/__init__.py unittest/__init__.py tests/x.txt x.egg-info/entry_points.txt .venv/lib/site-packages/a.py", "calc.py app/types.py types/a.go"},
		"npm test":                               {"node_modules/chai/index.js .babelrc .yarnrc.yml pnpm-workspace.yaml .env.test a.test.js a.spec.ts x/__snapshots__/a.snap package.json jest.config.cjs .mocharc.yml a-test.js", "src/a.js package-lock.json latest.js"},
		"cargo test":                             {"rust-toolchain.toml src/lib.rs tests/a.rs x.snap .cargo/config.toml Cargo.toml", "Cargo.lock README.md"},
		"mvn test":                               {".mvn/maven.config gradle.properties src/test/java/A.java src/main/ATest.java src/main/java/org/junit/Assert.java pom.xml", "src/main/A.java"},
		"ctest":                                  {"CMakePresets.json cmake/Tests.cmake tests/a.c test_a.cc a_unittest.cc CMakeLists.txt CTestCustom.cmake include/assert.h gtest/gtest.h", "a.c"},
		"bundle exec rspec":                      {"spec/a_spec.rb lib/rspec/core.rb .rspec", "lib/a.rb"},
		"bundle exec rake":                       {"Rakefile lib/tasks/a.rake test/a.rb", "lib/a.rb"},
		"vendor/bin/phpunit":                     {"tests/ATest.php phpunit.xml.dist composer.json vendor/bin/phpunit", "src/A.php"},
		"dotnet test":                            {"A.sln A/A.csproj Directory.Build.props ATests/A.cs", "A/A.cs"},
		"swift test":                             {"Package.swift Sources/ATests.swift", "Sources/A.swift"},
		"mix test":                               {"mix.exs config/test.exs", "config/config.exs"},
		"bats .":                                 {"a.bats", "a.sh"},
		"prove -r":                               {"t/a.t", "lib/A.pm"},
		"ruff check . && mypy src":               {"ruff.toml mypy.ini pyproject.toml", "test_a.py tests/a.py conftest.py"},
		"go vet ./... && gofmt -l .":             {".golangci.yml", "a_test.go"},
		"gcc -fsanitize=address test_a.c":        {".clang-tidy", "test_a.c"},
		"npx eslint . && npx tsc --noEmit":       {"eslint.config.js tsconfig.json .eslintrc", "a.test.ts"},
		"python3 -m mypy .":                      {"mypy.ini", "test_a.py"},
		"golangci-lint run && go test ./...":     {".golangci.yml a_test.go", "a.go"},
		"if then":                                {"a_test.go", "a.go"}, // no shell's line
		"test -z \"$(gofmt -l .)\" && ./ok.sh a": {"ok.sh", "a"},
	} {
		s := judge.Of(command)
		for path := range strings.FieldsSeq(strings.ReplaceAll(c.judges, "a b.sh", "a\x00b.sh")) {
			if path = strings.ReplaceAll(path, "\x00", " "); !s.Has(path) {
				t.Errorf("%s: %s does not judge", command, path)
			}
		}
		for path := range strings.FieldsSeq(c.others) {
			if s.Has(path) {
				t.Errorf("%s: %s judges", command, path)
			}
		}
	}
	if (judge.Set{}).Has("a_test.go") {
		t.Error("the zero Set has a file")
	}
}

// TestIn: what judges depends on the files that the run found.
func TestIn(t *testing.T) {
	found := workspace.Manifest{{Path: "chk", Mode: 0o755}, {Path: "plain"}, {Path: "impl/c", Mode: 0o755}, {Path: "check.sh", Target: "impl/c"},
		{Path: "suite/run"}, {Path: "tests", Target: "all"}, {Path: "all", Target: "/top/suite"}, {Path: "real/ci.sh"}, {Path: "x/bin", Target: "../real"}}
	for command, c := range map[string]struct{ judges, others string }{
		"./check.sh": {"check.sh impl/c", "chk"},
		"sh -c 'for f in tests/*; do sh $f; done'": {"tests all suite/run suite/new", "chk"},
		"sh x/bin/ci.sh":                {"real/ci.sh x/bin", "real/other"},
		"/top/chk; /other/plain":        {"chk", "plain"},
		"$PWD/chk":                      {"chk", "plain"},
		"sh \"$(pwd)\"/plain":           {"plain", "chk"},
		"$PYTHON plain":                 {"", "plain"},
		"env -u FOO ./chk":              {"chk", "plain"},
		"flock /tmp/l ./chk plain":      {"chk", "plain"},
		"flock /tmp/l sh plain":         {"plain", "chk"},
		"eval ./plain":                  {"plain", "chk"},
		"echo plain | xargs -n 1 sh":    {"plain", "chk"},
		"sh < plain":                    {"plain", "chk"},
		"cat plain | sh -e":             {"plain", "chk"},
		"sh <<< ./plain":                {"plain", "chk"},
		"S=./plain; $S":                 {"plain", "chk"},
		"S='sh plain'; $S":              {"plain", "chk"},
		"python3 chk":                   {"", "chk"},
		"shellcheck chk; grep -q x chk": {"", "chk"},
		"make -fplain test":             {"plain", "chk"},
		"make --file=plain":             {"plain", "chk"},
		"make -I suite":                 {"suite/run", "plain"},
		"nice make -Isuite":             {"suite/run Makefile", "plain"},
	} {
		s := judge.Of(command).In("/top", found)
		for path := range strings.FieldsSeq(c.judges) {
			if !s.Has(path) {
				t.Errorf("%s: %s does not judge", command, path)
			}
		}
		for path := range strings.FieldsSeq(c.others) {
			if s.Has(path) {
				t.Errorf("%s: %s judges", command, path)
			}
		}
	}
	if !(judge.Set{}).In("/top", found).IsZero() {
		t.Error("the zero Set has files")
	}
}

func TestMerge(t *testing.T) {
	const rust = "fn f() {}\n#[cfg(test)]\nmod tests {\n    // }\n    #[test]\n    fn a() { assert_eq!(f(), '}', \"}\"); }\n}\n"
	for name, c := range map[string]struct {
		path, now, found, want string // "-" is no file; an empty want is now
	}{
		"same":                       {"a_test.go", "x", "x", ""},
		"changed":                    {"a_test.go", "x", "y", "y"},
		"added":                      {"conftest.py", "x", "-", "-"},
		"removed":                    {"a_test.go", "-", "x", "x"},
		"neither":                    {"a_test.go", "-", "-", ""},
		"emptied":                    {"a_test.go", "", "x", "x"},
		"dependency":                 {"package.json", `{"scripts":{"test":"a"},"dependencies":{"x":"2"}}`, `{"scripts":{"test":"a"}}`, ""},
		"script":                     {"package.json", `{"scripts":{"test":"true"},"version":"2"}`, `{"scripts":{"test":"jest"}}`, "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  },\n  \"version\": \"2\"\n}"},
		"settings added":             {"x/package.json", `{"jest":{"testMatch":[]}}`, `{}`, "{}"},
		"new package":                {"package.json", `{"jest":1,"name":"a"}`, "-", "{\n  \"name\": \"a\"\n}"},
		"not JSON":                   {"package.json", `{`, `{}`, "{}"},
		"Python package":             {"pyproject.toml", "[project]\nversion = '2'\n[tool.pytest.ini_options]\nx = 1\n", "[tool.pytest.ini_options]\nx = 1\n", ""},
		"pytest":                     {"pyproject.toml", "[tool.pytest.ini_options]\naddopts = '--collect-only'\n", "[tool.pytest.ini_options]\nx = 1\n", "\x00"},
		"setup.cfg":                  {"setup.cfg", "[metadata]\nname = b\n", "[metadata]\nname = a\n", "\x00"},
		"crate":                      {"Cargo.toml", "[dependencies]\nx = '2'\n[lib]\nname = 'b'\n", "[dependencies]\nx = '1'\n", ""},
		"no autotests":               {"Cargo.toml", "[package]\nname = 'a'\nautotests = false\n", "[package]\nname = 'a'\n", "[package]\nname = 'a'\n"},
		"CMake":                      {"CMakeLists.txt", "add_library(a a.c b.c)\nadd_test(a a)\n", "add_library(a a.c)\nadd_test(a a)\n", ""},
		"CMake, test":                {"CMakeLists.txt", "add_library(a b.c)\n", "add_library(a a.c)\nadd_test(a a)\n", "add_library(a a.c)\nadd_test(a a)\n"},
		"CMake, in a comment":        {"CMakeLists.txt", "#[[\nadd_test(a a)\n]]\n", "add_test(a a)\n", "add_test(a a)\n"},
		"Maven, in a comment":        {"pom.xml", "<!--\n<module>a</module>\n-->\n", "<module>a</module>\n", "\x00"},
		"Pipfile, dependency":        {"Pipfile", "[packages]\na = '2'\n", "[packages]\na = '1'\n", ""},
		"Pipfile, script":            {"Pipfile", "[scripts]\ntest = 'true'\n", "[scripts]\ntest = 'pytest'\n", "\x00"},
		"PDM":                        {"pyproject.toml", "[tool.pdm.scripts]\ntest = 'true'\n", "[tool.pdm.scripts]\ntest = 'pytest'\n", "\x00"},
		"Nx":                         {"a/project.json", `{"targets":{}}`, `{"targets":{"test":{}}}`, "\x00"},
		"Nx, name":                   {"a/project.json", `{"name":"b"}`, `{"name":"a"}`, ""},
		"CMake, return":              {"CMakeLists.txt", "return()\nadd_test(a a)\n", "add_test(a a)\n", "add_test(a a)\n"},
		"Maven, dependency":          {"pom.xml", "<version>2</version>\n", "<version>1</version>\n", ""},
		"Maven, skip":                {"pom.xml", "<skipTests>true</skipTests>\n", "", "" + "\x00"},
		"Go, dependency":             {"go.mod", "module a\nrequire x v2\n", "module a\nrequire x v1\n", ""},
		"Go, replacement":            {"go.mod", "module a\nreplace x => ./stub\n", "module a\n", "\x00"},
		"Go, new module":             {"go.mod", "module a\n", "-", ""},
		"Go, module below":           {"x/go.mod", "module a\n", "-", "-"},
		"crate replaced":             {"Cargo.toml", "[patch.crates-io]\na = 'b'\n[package]\nname = 'a'\n", "[package]\nname = 'a'\n", "[package]\nname = 'a'\n"},
		"Maven, module":              {"pom.xml", "", "<module>a</module>\n", "\x00"},
		"Maven, packaging":           {"pom.xml", "<packaging>pom</packaging>\n", "", "\x00"},
		"solution":                   {"A.sln", "A\n", "A\nATests\n", "\x00"},
		"Elixir, alias":              {"mix.exs", "aliases: [test: []]\n", "x\n", "\x00"},
		"Rust source":                {"src/lib.rs", strings.Replace(rust, "{}", "{ 1 }", 1), rust, ""},
		"Rust test":                  {"src/lib.rs", strings.Replace(strings.Replace(rust, "{}", "{ 1 }", 1), "f(), '}'", "1, '}'", 1), rust, strings.Replace(rust, "{}", "{ 1 }", 1)},
		"Rust test removed":          {"src/lib.rs", "fn f() { 1 }\n", rust, "fn f() { 1 }\n\n" + strings.TrimPrefix(strings.TrimSuffix(rust, "\n"), "fn f() {}\n")},
		"Rust test added":            {"src/lib.rs", rust, "fn f() {}\n", "fn f() {}\n\n"},
		"Rust module of tests":       {"src/lib.rs", "#[cfg(test)]\nmod tests;\nfn a() {}", "#[cfg(test)]\nmod tests;\nfn b() {}", ""},
		"Rust tests":                 {"src/tests.rs", "x", "y", "y"},
		"Rust lifetime":              {"src/lib.rs", "fn f<'a>(x: &'a str) { }\n#[test]\nfn t() { }\n", "fn f<'a>(x: &'a str) { }\n#[test]\nfn t() { 1 }\n", "fn f<'a>(x: &'a str) { }\n#[test]\nfn t() { 1 }\n"},
		"Rust, ignored":              {"src/lib.rs", "#[test]\n#[ignore]\nfn t() { }\n", "#[test]\nfn t() { }\n", "#[test]\nfn t() { }\n"},
		"Rust, ignored before":       {"src/lib.rs", "#[ignore]\n// why\n#[test]\nfn t() { }\n", "#[test]\nfn t() { }\n", "#[test]\nfn t() { }\n"},
		"Rust, brace in a raw text":  {"src/lib.rs", "#[test]\nfn t() { r#\"}\"#; }\nfn f() {}", "#[test]\nfn t() { r#\"}\"#; }\nfn g() {}", ""},
		"Rust, nothing but an error": {"src/lib.rs", "#[test", "fn", ""},
		"Rust, on one line":          {"src/lib.rs", "fn f() {}\n#[test] fn t() { 1 }\n", "fn f() {}\n#[test] fn t() { 2 }\n", "fn f() {}\n#[test] fn t() { 2 }\n"},
		"Rust, arguments":            {"src/lib.rs", "#[rstest]\n#[case(1)]\nfn t(\n    #[case] n: u8,\n) {\n    1\n}\nfn a() {\n}\n", "#[rstest]\n#[case(2)]\nfn t(\n    #[case] n: u8,\n) {\n    1\n}\nfn b() {\n}\n", "#[rstest]\n#[case(2)]\nfn t(\n    #[case] n: u8,\n) {\n    1\n}\nfn a() {\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			file := func(text string) []byte {
				if text == "-" {
					return nil
				}
				return []byte(text)
			}
			got := judge.Merge(c.path, file(c.now), file(c.found))
			want := file(c.want)
			switch c.want {
			case "":
				want = file(c.now)
			case "\x00":
				want = file(c.found)
			}
			if (got == nil) != (want == nil) || strings.ReplaceAll(string(got), `"`, "'") != strings.ReplaceAll(string(want), `"`, "'") {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// FuzzMerge merges files that are what they were found as into themselves.
func FuzzMerge(f *testing.F) {
	f.Add("#[test]\nfn a() { '}' }", "{}")
	f.Fuzz(func(t *testing.T, now, found string) {
		for _, path := range []string{"a.rs", "package.json", "pyproject.toml", "setup.cfg", "pom.xml"} {
			if got := judge.Merge(path, []byte(now), []byte(now)); string(got) != now {
				t.Errorf("%s: merged into itself: %q", path, got)
			}
			_ = judge.Merge(path, []byte(now), []byte(found))
		}
	})
}
