//go:build !nightly

package ops_test

import "github.com/lazo-ml/lazo/internal/plugintest"

const programs = 12

var openPrograms = plugintest.CPU
