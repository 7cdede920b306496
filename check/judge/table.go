package judge

import (
	"path"
	"slices"
	"strings"

	"hone/internal/lazyregexp"
)

// runnerFiles are the files that test runners read by name: tests, their helpers and
// settings, and names that a runner would take for its own. A name counts at any depth;
// with a slash at its end it is a directory, with everything below it, and with one before it
// it counts only at the top of the tree.
//
// What lists the parts of a program, such as go.sum, is not here: a fix changes it. Of a
// file that is both, only a part judges; see partOf.
func runnerFiles() []string {
	return []string{
		// Go
		"*_test.go testdata/ go.work go.mod *test/*.go",
		"{testutil,testutils,testhelper,testhelpers,testlib,testkit,testsupport}/ test_{util,utils,helper,helpers,support}/ test-{utils,helpers}/",
		// Python; a module of a runner's name beside the tests takes its place.
		"test*.py *_test.py conftest.py pytest.ini .pytest.ini tox.ini noxfile.py .coveragerc",
		"sitecustomize.py usercustomize.py *.pth unittest.py unittest/ doctest.py pytest.py pytest/ _pytest/ pluggy.py",
		"setup.cfg pyproject.toml pytest.toml .pytest.toml *.egg-info/ *.dist-info/ nose2.cfg unittest.cfg behave.ini Pipfile pixi.toml",
		// Node
		"*.{test,spec}.* {test,test-*,*[-_]test,*_spec}.{js,cjs,mjs,jsx,ts,cts,mts,tsx} __tests__/ __mocks__/ __snapshots__/ e2e/ cypress/",
		"{jest,vitest,vitest.workspace,vite,playwright,cypress,karma,ava,wdio,web-test-runner}.{config,conf}.* vitest.workspace.* karma.conf.* wdio.conf.*",
		"jest.setup.* setupTests.* .mocharc* .taprc .nycrc* .c8rc* bunfig.toml deno.json deno.jsonc package.json",
		".yarnrc* .pnp.* .pnpmfile.cjs pnpm-workspace.yaml nx.json project.json turbo.json angular.json babel.config.* .babelrc* .swcrc jest.preset.* *.{cy,e2e}.*",
		// Rust; tests stand in the sources as well.
		"*.rs *.snap .config/nextest.toml .cargo/config .cargo/config.toml Cargo.toml rust-toolchain rust-toolchain.toml",
		// Java and Kotlin
		"src/test/ *Test.java *Tests.java *IT.java *Test.kt *Tests.kt junit-platform.properties pom.xml build.gradle build.gradle.kts",
		"org/junit/ junit/ org/testng/ org/hamcrest/ org/mockito/ org/assertj/ kotlin/test/",
		"settings.gradle settings.gradle.kts gradle.properties gradle/wrapper/ buildSrc/ .mvn/ *{Spec,Test}.{groovy,scala} build.sbt",
		// C and C++
		"CTestCustom.cmake CTestConfig.cmake CMakeLists.txt CMake*Presets.json *.cmake meson.build .valgrindrc *.supp",
		"assert.h unity.h cmocka.h catch.hpp doctest.h catch2/ gtest/ gmock/ criterion/ boost/test/",
		// Ruby
		"*_spec.rb .rspec .rspec-local .simplecov minitest.rb rspec.rb minitest/ rspec/",
		// PHP
		"PHPUnit/ *Test.php phpunit.xml phpunit.xml.dist phpunit.dist.xml codeception.yml behat.yml composer.json",
		// .NET and Elixir
		"*Tests/ *{Test,Tests}.{cs,fs} *.runsettings xunit.runner.json *.{cs,fs,vb}proj *.sln *.slnx Directory.Build.* *_test.exs test_helper.exs mix.exs config/test.exs",
		// Swift, Dart, Erlang, Lua, Haskell, Zig
		"*{Test,Tests}.swift Package.swift *_test.dart dart_test.yaml *_SUITE.erl rebar.config *_spec.lua .busted *.cabal build.zig",
		// The tests of one file, and those of languages without a runner of their own
		"test.{@} tests.{@} unittest.{@} unittests.{@} selftest.{@} *[-_]test.{@} *[-_]tests.{@} *[-_]unittest.{@} test[-_]*.{@} tests[-_]*.{@}",
		// What a program that tests may start in turn, and the code of other people that tests use
		"GNUmakefile Makefile makefile Makefile.am Makefile.in Makefile.PL Build.PL configure *.mk .bazelrc *.bzl justfile .justfile Taskfile.yml Taskfile.yaml Rakefile rakefile *.rake gulpfile.* Gruntfile.*",
		"{test,tests,runtest,runtests,run-test,run-tests,run_test,run_tests,check,ci}.{sh,bash} {bin,script,scripts,tools}/{test,tests,check,ci,cibuild} ci/ .ci/",
		".env .env.* /vendor/ vendor/*.*/*/ vendor/{bin,bundle,composer,phpunit}/ vendor/modules.txt vendor/autoload.php node_modules/ site-packages/",
		// Shell, Perl and all others
		"*.bats *_test.sh test_*.sh *.t t/ .proverc .shellspec test/ tests/ spec/ specs/ *.golden golden/",
	}
}

// languages are the extensions that @ stands for in a row.
const languages = "c,cc,cpp,cxx,m,mm,d,nim,zig,rb,lua,php,pl,jl,r,R,hs,ml,scala,groovy,clj,cr,v,f90,tcl,ps1"

// importedFiles are modules with the name of one of a standard library that a runner imports,
// in a folder in which it looks first; empty is the top.
func importedFiles(folder string) []string {
	var list []string
	for _, name := range []string{pythonImports + ".py", pythonImports + "/__init__.py", rubyImports + ".rb"} {
		list = append(list, path.Join(folder, name))
	}
	return list
}

// rubyImports are libraries of Ruby that minitest, test-unit and RSpec require.
const rubyImports = "{English,benchmark,bundler,bundler/setup,delegate,digest,erb,etc,fileutils,forwardable,io/console,json,monitor,objspace,open3,optparse,ostruct,pathname,pp,prettyprint," +
	"psych,rake,rbconfig,ripper,rubygems,securerandom,set,shellwords,singleton,socket,stringio,strscan,tempfile,time,timeout,tmpdir,tsort,uri,weakref,yaml,zlib}"

// pythonImports are modules of Python's standard library that unittest, pytest and doctest
// import.
const pythonImports = "{argparse,ast,atexit,bdb,bisect,cmd,code,codeop,collections,configparser,contextlib,copy,csv,dataclasses,datetime,decimal,difflib,dis,email,enum,fnmatch,functools," +
	"gettext,glob,hashlib,heapq,importlib,inspect,itertools,json,keyword,linecache,locale,logging,math,numbers,opcode,operator,pathlib,pdb,platform,pprint,queue,random,re,reprlib,runpy," +
	"shlex,shutil,signal,socket,string,struct,subprocess,tempfile,textwrap,threading,token,tokenize,traceback,types,typing,uuid,warnings,weakref,xml,zipfile}"

// linterFiles are the settings of linters and compilers, which say what counts as a fault.
func linterFiles() []string {
	return []string{
		".golangci.* staticcheck.conf revive.toml",
		"ruff.toml .ruff.toml mypy.ini .mypy.ini .flake8 .isort.cfg .pylintrc pylintrc pyrightconfig.json tox.ini setup.cfg pyproject.toml .bandit",
		".eslintrc* .eslintignore eslint.config.* tsconfig*.json jsconfig.json .prettierrc* .prettierignore prettier.config.* biome.json biome.jsonc .stylelintrc* .oxlintrc.json package.json",
		"clippy.toml .clippy.toml rustfmt.toml .rustfmt.toml deny.toml Cargo.toml",
		"checkstyle.xml detekt.yml .editorconfig .clang-tidy .clang-format .rubocop.yml .rubocop_todo.yml",
		"phpstan.neon phpstan.neon.dist psalm.xml psalm.xml.dist .php-cs-fixer.* .credo.exs .formatter.exs",
		".shellcheckrc .yamllint* .markdownlint* .hadolint.yaml .codespellrc .typos.toml _typos.toml",
	}
}

// linters are programs that judge the files that they name, not by other files. A check
// that runs nothing else has no tests.
const linters = " gofmt goimports golangci-lint staticcheck revive govulncheck ruff mypy flake8 pylint pyright black isort bandit eslint tsc prettier biome oxlint stylelint" +
	" clippy-driver rustfmt rubocop clang-tidy clang-format cppcheck gcc g++ cc c++ clang clang++ javac phpstan psalm shellcheck shfmt yamllint markdownlint hadolint codespell typos "

// lintingWords are, by program, the words after it with which it compiles or lints.
const lintingWords = " go:vet go:build go:fmt cargo:check cargo:clippy cargo:fmt cargo:build ruff:check dotnet:build swift:build "

// makers are, by program, the files of the tree that say what it runs.
func makers() map[string]string {
	const makefiles = "GNUmakefile makefile Makefile *.mk"
	return map[string]string{
		"make": makefiles, "gmake": makefiles, "bmake": makefiles + " BSDmakefile", "remake": makefiles,
		"just": "justfile .justfile *.just", "task": "Taskfile.yml Taskfile.yaml Taskfile.dist.yml Taskfile.dist.yaml",
		"rake": "Rakefile rakefile Rakefile.rb *.rake", "ninja": "build.ninja", "mage": "magefile.go magefiles/",
		"tox": "tox.ini", "nox": "noxfile.py", "invoke": "tasks.py", "inv": "tasks.py", "gulp": "gulpfile.*", "grunt": "Gruntfile.*",
		"ant": "build.xml", "bazel": "BUILD BUILD.bazel", "scons": "SConstruct", "gradlew": "gradlew", "mvnw": "mvnw",
	}
}

// shells are programs whose first operand is a script that they run.
const shells = " sh bash dash zsh ksh ash busybox . source "

// wrappers are programs that run the command that their operands are.
const wrappers = " env time timeout nice nohup command exec xvfb-run bundle npx uv poetry pipenv hatch run sudo stdbuf unbuffer "

// builtins run no file that they name.
const builtins = " cd echo printf test [ true false export set exit : pushd popd mkdir rm "

// readers read the files that they name.
const readers = " cat grep diff cmp cp mv ls head tail wc sed awk find sort touch chmod "

// interpreters are the programs that run a script, beside the shells, and go, whose run is one.
const interpreters = " python node ruby perl php Rscript julia deno bun lua tsx ts-node pypy jruby pwsh bc dc "

// filters read a script that an option names.
const filters = " awk gawk mawk nawk sed jq "

func isInterpreter(program string) bool {
	return listed(interpreters, strings.TrimRight(program, "0123456789."))
}

// interpreted returns the path of the script, of the module or of the folder that an interpreter
// runs, and the values of options before it that say that they judge. If it is not known what it
// runs, these are all words of the line that say so.
func interpreted(program string, args, all []string) (scripts []string) {
	if listed(filters, program) {
		for i, a := range args {
			if strings.HasPrefix(a, "-") && (strings.HasSuffix(a, "f") || strings.HasSuffix(a, "file")) && i+1 < len(args) {
				scripts = append(scripts, args[i+1])
			}
		}
		return scripts
	}
	compiles := program == "go" && first(args) == "run"
	if !compiles && !isInterpreter(program) {
		return nil
	}
	for i, a := range args {
		_, value, named := strings.Cut(a, "=")
		switch {
		case a == "-m" && i+1 < len(args):
			return append(scripts, strings.ReplaceAll(args[i+1], ".", "/"))
		case a == "-c", a == "-e", a == "--eval":
			return scripts
		case a == "-", isGiven(a):
			return append(scripts, judging(all)...)
		case !strings.HasPrefix(a, "-") && a != "run" && !named:
			return append(scripts, a)
		case named && saysCheck(value):
			scripts = append(scripts, value)
		}
	}
	return append(scripts, judging(all)...)
}

func judging(words []string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !saysCheck(w) })
}

// programFiles returns patterns of a script that may be named without its extension, and of what a
// folder with a main file has.
func programFiles(script string) []string {
	at := inTree(script)
	if path.Ext(script) != "" {
		return []string{at}
	}
	return []string{at, at + ".{py,js,cjs,mjs,ts,mts}", at + "/**"}
}

// saysCheck reports whether the path of a program says that it judges. Any other that an
// interpreter runs may be the program that is under test.
func saysCheck(script string) bool {
	for _, word := range pathWord.FindAllString(strings.TrimSuffix(script, path.Ext(script)), -1) {
		if listed(checkWords, strings.TrimRight(strings.ToLower(word), "0123456789")) {
			return true
		}
	}
	return false
}

var pathWord = lazyregexp.New(`[A-Z]?[a-z0-9]+|[A-Z]`)

const checkWords = " check checks checker checking selfcheck verify verifier verification validate validator validation test tests tester testing runtest runtests testall selftest unittest unittests" +
	" lint linter linters ci judge judges judging grade grader grading assert asserts assertions spec specs acceptance conformance e2e smoke "
