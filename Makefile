# make run    builds freshet and starts it on the built-in demo web (nothing leaves this machine)
# make test   the whole suite, with the race detector
# make lint   formatting, vet, staticcheck
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
export CGO_ENABLED ?= 0

.PHONY: build run test lint bench clean

build:
	$(GO) build -trimpath -ldflags '-s -w -X github.com/freshet/freshet/internal/version.linked=$(VERSION)' -o bin/freshet ./cmd/freshet

# The address is in LISTEN; the demo's data is thrown away by make clean.
LISTEN ?= 127.0.0.1:8080
run: build
	./bin/freshet serve --demo --data dist/demo --listen $(LISTEN)

test:
	CGO_ENABLED=1 $(GO) test -race -timeout 30m ./...

lint:
	@test -z "$$(gofumpt -l $$(git ls-files '*.go'))" || { gofumpt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	staticcheck ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

clean:
	rm -rf bin dist
