# make help lists the targets: each has its description behind ##.
.DEFAULT_GOAL := build

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
TEMPORAL    := github.com/temporalio/cli/cmd/temporal@v1.5.1
VERSITYGW   := github.com/versity/versitygw/cmd/versitygw@v1.8.0
GORELEASER  ?= $(GO) run github.com/goreleaser/goreleaser/v2@v2.16.0
NIGHT       ?= 30m
ROUNDS      ?= 7
PREFIX      ?= /usr/local
DESTDIR     ?=

# The modules in directories below this one. ./... does not include them.
NESTED := examples/fixlint model/gemini/genaitest otlp/otlptest cmd/hone/web/browsertest docs/picture docs/performance fleet

# The modules that nested-race tests. genaitest and fleet import large SDKs: compiling Temporal's again takes longer than all
# tests of fleet. genaitest compares messages in one goroutine, and race tests its servers in their own packages. The
# workflows of fleet run one goroutine at a time. browsertest and otlptest only drive programs.
RACED := $(filter-out model/gemini/genaitest otlp/otlptest cmd/hone/web/browsertest fleet,$(NESTED))

# TEMPORARY keeps temporary files in memory. SHORT lets race skip slow tests. With HONE_TEST_ALL, which test-all sets, there
# is neither: unit runs all packages, nested-race all modules, and fuzz runs longer.
# TEMPORARY has another name each time, and the tests read it, so an earlier result never counts. Without -count=1,
# go test would still look at every file that each test has opened.
# TIMEOUT ends a package that hangs, and is not reached on a slow machine. A script has a limit of its own, and so has what a
# test waits for.
ifdef HONE_TEST_ALL
RACED     := $(NESTED)
TIMEOUT   ?= 12h
FUZZTIME  ?= 100000x
else
TEMPORARY := ./.ci/memory
FRESH     := -count=1
SHORT     := -short
TIMEOUT   ?= 3h
FUZZTIME  ?= 3000x
endif

# No debugger reads what race and cross compile, and nothing runs what cross compiles. The SDKs take most of the time to
# compile; without inlining, a third less.
LEAN   = $(if $(RACE),-gcflags=all=-dwarf=false $(foreach sdk,anthropics openai,'-gcflags=github.com/$(sdk)/...=-dwarf=false -l'))
CROSS := '-gcflags=all=-dwarf=false -l' '-ldflags=-s -w'

# The same settings as for unit and build, so that the packages are compiled only once.
PLAIN := CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath"

# The race detector needs a C compiler; without one the tests run without the detector. This is not known before
# needs has run.
RACE = $(shell command -v cc >/dev/null 2>&1 && echo -race)

# Prints the packages of unit: those that race does not test completely, or all if there is no race detector.
UNIT = $(if $(HONE_TEST_ALL),echo ./...,$(if $(RACE),./.ci/packages plain,echo ./...))

# Prints the packages of race: those in which goroutines can meet.
RACING = $(if $(HONE_TEST_ALL),echo ./...,./.ci/packages race)

.PHONY: gitleaks help build fleet temporal fleet-test share docs install uninstall demo picture test test-all night bench bench-go release-check changelog needs format vet cross static tidy beside unit nested race nested-race fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1	/p' Makefile | expand -t 16

# Without cgo, because walls start the program itself where no shared libraries are visible. With symbols, unlike
# releases, because debuggers and profilers need them; they do not slow the program.
build: ## build bin/hone
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.Version=$(VERSION)' -o bin/hone ./cmd/hone

# A second program, so that hone does not contain the client of Temporal. "hone fleet" runs it.
fleet: build ## build bin/hone-fleet beside bin/hone
	CGO_ENABLED=0 $(GO) -C fleet build -trimpath -ldflags '-X main.Version=$(VERSION)' -o '$(CURDIR)/bin/hone-fleet' ./cmd/hone-fleet

# Newer versions of the command line do not build.
temporal: ## build Temporal's command line into bin/, for hone-fleet dev and fleet-test; takes minutes
	test -x bin/temporal || GOBIN='$(CURDIR)/bin' CGO_ENABLED=0 $(GO) install -trimpath -ldflags '-s -w' $(TEMPORAL)

bin/versitygw: # a server that speaks S3, for fleet-test; takes minutes
	GOBIN='$(CURDIR)/bin' CGO_ENABLED=0 $(GO) install -trimpath -ldflags '-s -w' $(VERSITYGW)

fleet-test: fleet temporal bin/versitygw ## kill, stop and starve workers of a real Temporal server, and compare what is left
	PATH="$(CURDIR)/bin:$$PATH" HONE_FLEET_TEST=1 CGO_ENABLED=0 $(GO) -C fleet test -trimpath -count=1 -v -timeout 1h ./store ./e2e

# bin/share is laid out as /usr/share: packages and install copy it as it is.
share: build ## write the man pages and completions to bin/share
	rm -rf bin/share
	bin/hone man bin/share/man/man1
	mkdir -p bin/share/bash-completion/completions bin/share/zsh/site-functions bin/share/fish/vendor_completions.d
	bin/hone completion bash >bin/share/bash-completion/completions/hone
	bin/hone completion zsh >bin/share/zsh/site-functions/_hone
	bin/hone completion fish >bin/share/fish/vendor_completions.d/hone.fish

docs: ## write docs/configuration.md from the program
	$(PLAIN) $(GO) test ./cmd/hone -run 'TestConfigurationPage$$' -update

install: share fleet ## install hone, hone-fleet, the man pages and completions below DESTDIR and PREFIX
	install -d '$(DESTDIR)$(PREFIX)/bin'
	install -m 755 bin/hone bin/hone-fleet '$(DESTDIR)$(PREFIX)/bin'
	@cd bin/share && set -e && for file in $$(find . -type f); do \
		install -d "$(DESTDIR)$(PREFIX)/share/$${file%/*}"; \
		install -m 644 "$$file" "$(DESTDIR)$(PREFIX)/share/$$file"; \
	done
	@case ":$$PATH:" in *':$(PREFIX)/bin:'*) ;; *) test -n '$(DESTDIR)' || \
		echo 'hone is in $(PREFIX)/bin, which is not on your PATH; add to your shell'"'"'s profile: export PATH="$(PREFIX)/bin:$$PATH"' ;; esac

uninstall: share ## remove what install has installed
	rm -f '$(DESTDIR)$(PREFIX)/bin/hone' '$(DESTDIR)$(PREFIX)/bin/hone-fleet'
	@cd bin/share && find . -type f | while read -r file; do rm -f "$(DESTDIR)$(PREFIX)/share/$$file"; done

demo: build ## run the main job end to end, offline, in seconds
	bin/hone demo

# -count=1, because the test cache does not notice a change of a file outside of the module.
picture: build ## record docs/hone.svg, the moving picture in README.md
	CGO_ENABLED=0 $(GO) -C docs/picture run -trimpath . "$(CURDIR)/bin/hone" ../hone.svg
	CGO_ENABLED=0 $(GO) -C docs/picture test -trimpath -count=1 .

test: needs format vet static tidy cross beside demo ## run everything that CI runs; install what the tests need
	@echo "all tests passed"

# The nested modules and fuzzing often wait for one process. Beside unit and race, they use what these leave idle.
beside:
	@MAKE='$(MAKE) --no-print-directory' ./.ci/beside 'unit race' 'nested fuzz nested-race'

test-all: ## the same on the disk, all under the race detector, with kills at every point; takes hours
	@HONE_TEST_ALL=1 $(MAKE) --no-print-directory test

# All loops at once. NIGHT_SEED=N repeats what a night has drawn.
night: ## let every loop work through a night of faults in half an hour; NIGHT=10m is another length
	HONE_NIGHT=$(NIGHT) $(PLAIN) ./.ci/memory $(GO) test -vet=off -count=1 -v -parallel 8 -timeout 3h ./cmd/hone -run 'TestNight$$'

gitleaks: ## install gitleaks into bin/, whose judgement the tests of secrets compare with hone's
	GOBIN='$(CURDIR)/bin' $(PLAIN) $(GO) install github.com/zricethezav/gitleaks/v8@v8.30.1
	$(PLAIN) $(GO) test -count=1 ./workspace/secret -run 'TestSecondOpinion$$'

needs:
	@sh ./.ci/needs

format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }

vet:
	$(PLAIN) $(GO) vet ./... ./.ci/sbom
	@set -ex; for module in $(NESTED); do $(PLAIN) $(GO) -C $$module vet ./...; done

static:
	$(PLAIN) $(GO) run $(STATICCHECK) ./... ./.ci/sbom
	@set -ex; for module in $(NESTED); do $(PLAIN) $(GO) -C $$module run $(STATICCHECK) ./...; done

tidy:
	$(GO) mod tidy -diff
	@set -ex; for module in $(NESTED); do $(GO) -C $$module mod tidy -diff; done

cross:
	GOOS=darwin GOARCH=arm64 $(PLAIN) $(GO) build $(CROSS) ./...
	GOOS=windows GOARCH=amd64 $(PLAIN) $(GO) build $(CROSS) ./...

# Every test that race leaves out, with the rest of its package, without the race detector: with it, the tests that try
# to escape from walls would exceed their memory limits. -p 4 may exceed the number of cores, because the packages often
# wait for processes. -w, because no debugger reads the programs: the linker takes a third less.
unit:
	packages=$$($(UNIT)) && test -n "$$packages" && \
		$(PLAIN) $(TEMPORARY) $(GO) test $(FRESH) -vet=off -ldflags=-w -p 4 -parallel 4 -timeout $(TIMEOUT) $$packages

# Two modules at a time: the browser and the servers of some are slow to answer. -count=1, because their tests build hone, which
# the test cache does not notice: it would answer for an earlier one.
nested:
	@printf '%s\n' $(NESTED) | CGO_ENABLED=0 xargs -t -n1 -P2 sh -c '$(GO) -C "$$0" test -count=1 -trimpath -vet=off -timeout $(TIMEOUT) ./... || exit 255'

# Every package that it can find something in under the race detector. With -short, tests skip what the detector cannot see, such as
# other processes, and what it also sees in a part of the test: long inputs, most of the points to kill at. With
# -trimpath, clones in different directories share the build cache.
race:
	packages=$$($(RACING)) && test -n "$$packages" && \
		GORACE=atexit_sleep_ms=0 $(TEMPORARY) $(GO) test $(FRESH) -trimpath -vet=off $(LEAN) $(RACE) $(SHORT) -p 4 -parallel 6 -timeout $(TIMEOUT) $$packages

nested-race:
	@set -ex; for module in $(RACED); do $(GO) -C $$module test -count=1 -trimpath -vet=off $(LEAN) $(RACE) $(SHORT) -timeout $(TIMEOUT) ./...; done

# Every fuzz target, briefly; two packages at a time.
fuzz:
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | \
		$(PLAIN) xargs -n1 -P2 sh -c './.ci/fuzz "$$0" $(FUZZTIME) || exit 255'

# A machine that is not quiet needs more ROUNDS.
bench: build ## measure hone beside a bare client, and write the table of docs/performance.md
	CGO_ENABLED=0 $(GO) -C docs/performance run -trimpath . -hone '$(CURDIR)/bin/hone' -write ../performance.md -rounds $(ROUNDS)

bench-go: ## run the Go benchmarks of all packages
	$(PLAIN) $(GO) test -run '^$$' -bench . -benchmem ./...

# It publishes nothing. It builds every archive and package twice, and compares them.
release-check: ## build a release as goreleaser would publish it, without publishing it
	GORELEASER='$(GORELEASER)' ./.ci/release-check

changelog: ## move the notes in changes/ to CHANGELOG.md, as the release RELEASE=1.2.3
	./.ci/changelog '$(RELEASE)'

clean: ## remove what was built
	rm -rf bin dist
