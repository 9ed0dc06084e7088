//go:build nightly

package ops_test

import "github.com/lazo-ml/lazo/internal/plugintest"

const programs = 2_000

var openPrograms = plugintest.Uncached // they would push others' programs out of the cache
