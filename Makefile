# make run    builds freshet and starts it on the built-in demo web (nothing leaves this machine)
# make test   the whole suite, with the race detector
# make lint   golangci-lint where it is installed, else the same checks one by one
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
export CGO_ENABLED ?= 0

.PHONY: build run test lint lint-single bench clean

build:
	$(GO) build -trimpath -ldflags '-s -w -X github.com/freshet/freshet/internal/version.linked=$(VERSION)' -o bin/freshet ./cmd/freshet

# The address is in LISTEN; the demo's data is thrown away by make clean.
LISTEN ?= 127.0.0.1:8080
run: build
	./bin/freshet serve --demo --data dist/demo --listen $(LISTEN)

test:
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

GOFILES = $$(git ls-files '*.go' ':!lab/bench/peers')
GODIRS  = $$(git ls-files '*.go' ':!lab/bench/peers' | xargs -n1 dirname | sort -u | sed 's,^,./,')

lint:
	@if command -v golangci-lint >/dev/null; then golangci-lint run && golangci-lint fmt --diff; else $(MAKE) --no-print-directory lint-single; fi

lint-single:
	@test -z "$$(gofumpt -l $(GOFILES))" || { gofumpt -l $(GOFILES); exit 1; }
	$(GO) vet ./...
	staticcheck ./...
	! command -v predeclared >/dev/null || predeclared $(GODIRS)
	! command -v misspell >/dev/null || misspell -error -i minister,process,ministr,proces $(GOFILES) docs/*.md *.md

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin dist
