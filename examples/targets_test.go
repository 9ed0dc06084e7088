//go:build targets

package examples

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
)

// unplanned are the examples whose first training step is not compiled for a described machine, and what lazo plan
// says.
var unplanned = map[string]string{
	"eager": "compile whole steps for it", // it runs operation by operation
	"own":   "it made no training step",   // its state and steps are its own, without a graph
}

// arguments are what a program is to be given.
var arguments = map[string][]string{"export": {"folder"}, "tabular": {"tabular/penguins.csv"}}

// TestTargets compiles the first training step of each example for machines that are not there, divided by data.
func TestTargets(t *testing.T) {
	lazo := plugintest.Program(t, "../cmd/lazo")
	programs, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	for _, target := range []string{"h100:8", "v5e:2x2"} {
		planned, failed, begin := 0, 0, time.Now()
		for _, path := range programs {
			name := filepath.Dir(path)
			t.Run(target+" "+name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				out, err := exec.CommandContext(ctx, lazo, append([]string{"plan", "--for", target, "./" + name}, arguments[name]...)...).CombinedOutput()
				reason, listed := unplanned[name]
				switch {
				case err == nil && listed:
					t.Error("it is planned now: take its row out of unplanned")
				case err == nil:
					planned++
					t.Logf("%s", out)
				case listed && strings.Contains(string(out), reason):
					failed++
				default:
					t.Errorf("%v: %s", err, out)
				}
			})
		}
		t.Logf("%s: the steps of %d examples compiled, %d failed as listed, %v", target, planned, failed, time.Since(begin).Round(time.Second))
	}
}
