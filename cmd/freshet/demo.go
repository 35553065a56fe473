package main

import (
	"context"
	"os"

	"github.com/freshet/freshet/config"
	"github.com/freshet/freshet/node"
)

// defaultConfig is the configuration without a file.
func defaultConfig() (*config.Config, error) { return config.Load("", os.Environ(), nil) }

// startDemo serves the demo web on a loopback port and makes it the source.
func startDemo(_ context.Context, _ *config.Config, _ *node.Options) (stop func(), err error) {
	return func() {}, nil
}
