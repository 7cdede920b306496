# make demo      builds hone and runs its main job end to end, offline
# make test      everything that CI runs; installs what the tests need and the machine lacks
# make test-all  the same on the disk, every test under the race detector too, and kills at every point: hours
# make bench     the benchmarks
# make build     bin/hone

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
FUZZTIME    ?= 10000x

# The modules below this one. ./... does not reach them.
NESTED := examples/fixlint model/gemini/genaitest

# Where unit keeps its temporary files, and what race leaves out. Not so for test-all.
TEMPORARY := ./.ci/memory
SHORT     := -short
TIMEOUT   := 30m

# As the program is built: what is compiled for the tests is then compiled once.
PLAIN := CGO_ENABLED=0 GOFLAGS="$$($(GO) env GOFLAGS) -trimpath"

# The race detector needs a C compiler; without one the tests run all the same.
RACE := $(shell command -v cc >/dev/null 2>&1 && echo -race)

.PHONY: build demo test test-all bench needs format vet cross static tidy unit race fuzz clean

# Without cgo: walls start the program itself in places that show no libraries.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.Version=$(VERSION)' -o bin/hone ./cmd/hone

demo: build
	bin/hone demo

test: needs format vet static tidy cross unit race fuzz demo
	@echo "all tests passed"

test-all: export HONE_TEST_ALL = 1
test-all: TEMPORARY :=
test-all: SHORT :=
test-all: TIMEOUT := 6h
test-all: test

needs:
	@sh ./.ci/needs

format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }

vet:
	$(PLAIN) $(GO) vet ./...
	@set -ex; for module in $(NESTED); do $(PLAIN) $(GO) -C $$module vet ./...; done

static:
	$(PLAIN) $(GO) run $(STATICCHECK) ./...
	@set -ex; for module in $(NESTED); do $(PLAIN) $(GO) -C $$module run $(STATICCHECK) ./...; done

tidy:
	$(GO) mod tidy -diff
	@set -ex; for module in $(NESTED); do $(GO) -C $$module mod tidy -diff; done

cross:
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hone
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hone

# Every test of every package, without the race detector, which the attempts of the tables have no memory for.
# Packages run beside each other, more than there may be cores: they often wait for processes.
unit:
	CGO_ENABLED=0 $(TEMPORARY) $(GO) test -trimpath -p 4 -timeout $(TIMEOUT) ./...
	@set -ex; for module in $(NESTED); do CGO_ENABLED=0 $(GO) -C $$module test -trimpath ./...; done

# Every package again under the race detector, on the disk. With -short, tests leave out what it would not see or
# sees in a part as well: other processes, long inputs, most of the points to kill at.
race:
	GORACE=atexit_sleep_ms=0 $(GO) test $(RACE) $(SHORT) -p 4 -timeout $(TIMEOUT) ./...
	@set -ex; for module in $(NESTED); do $(GO) -C $$module test $(RACE) $(SHORT) ./...; done

# Every fuzz target for a moment, two packages beside each other.
fuzz:
	@grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | \
		$(PLAIN) xargs -n1 -P2 sh -c './.ci/fuzz "$$0" $(FUZZTIME) || exit 255'

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin
