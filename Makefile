# make demo   builds hone and runs its main job end to end, offline
# make test   everything that CI runs; installs what the tests need and the machine lacks
# make bench  the benchmarks
# make build  bin/hone

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
FUZZTIME    ?= 10000x

# The modules below this one. ./... does not reach them.
NESTED := model/gemini/genaitest

# The race detector needs a C compiler; without one the tests run all the same.
RACE := $(shell command -v cc >/dev/null 2>&1 && echo -race)

.PHONY: build demo test bench needs format vet cross static tidy unit walls fuzz clean

# Without cgo: walls start the program itself in places that show no libraries.
build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.Version=$(VERSION)' -o bin/hone ./cmd/hone

demo: build
	bin/hone demo

test: needs format vet static tidy cross unit walls fuzz demo
	@echo "all tests passed"

needs:
	@sh ./.ci/needs

format:
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "not gofmt-clean:"; echo "$$unformatted"; exit 1; }

vet:
	$(GO) vet ./...
	@set -ex; for module in $(NESTED); do $(GO) -C $$module vet ./...; done

static:
	$(GO) run $(STATICCHECK) ./...
	@set -ex; for module in $(NESTED); do $(GO) -C $$module run $(STATICCHECK) ./...; done

tidy:
	$(GO) mod tidy -diff
	@set -ex; for module in $(NESTED); do $(GO) -C $$module mod tidy -diff; done

cross:
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hone
	GOOS=windows GOARCH=amd64 CGO_ENABLED=0 $(GO) build -o /dev/null ./cmd/hone

# Packages beside each other, more than there may be cores: much of the time they wait for processes and the disk.
unit:
	$(GO) test $(RACE) -p 4 -timeout 30m ./...
	@set -ex; for module in $(NESTED); do $(GO) -C $$module test $(RACE) ./...; done

# What is about other processes, and kills at many points, without the race detector: it needs more memory
# than the attempts of the tables may have, and minutes.
walls:
	$(GO) test -run Crash . ./loop/...
	$(GO) test ./sandbox/prove
	$(GO) test -run 'TestPhase|TestHealthChecks|TestMakePhase|TestKillServer|TestKillPhase|TestGeminiCLI|TestFault' ./cmd/hone
	$(GO) test -run 'TestScripts/(phase_|sandbox_|fault_|prove_phase|undo_disk)' ./cmd/hone

# Every fuzz target for a moment, one after the other: a package can only run one at a time.
fuzz:
	@set -e; for package in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(grep -ho '^func Fuzz[A-Za-z0-9_]*' $$package/*_test.go | cut -d' ' -f2); do \
			$(GO) test $$package -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME); \
		done; \
	done

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin
