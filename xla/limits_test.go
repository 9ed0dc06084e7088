package xla_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// memoryLimits are address limits (ulimit -v) in percent of the task's need without a limit, which is some gigabytes
// and depends on plugin and processors. The first ends Go's runtime, the next the loading of the plugin, the others
// below 100 the start of its threads, compilations and buffers. The last suffices. The nightly form has more.
var memoryLimits = []int{10, 45, 75, 80, 84, 87, 90, 95, 120}

// TestF52_memoryLimits: a process without enough memory ends with an error or a message, at any point; and the limit is
// not reported as damage.
func TestF52_memoryLimits(t *testing.T) {
	do := task{Bytes: 256 << 20}
	free := do.inChild(t, "", "A=")
	require.Zero(t, free.code, "without a limit: %s", free.stderr)
	require.Empty(t, free.Error, "without a limit")
	require.Greater(t, free.Addresses, do.Bytes, "of the task without a limit, read from VmPeak in /proc/self/status")
	done, errors, messages := 0, 0, 0
	for _, known := range []bool{false, true} { // the plugin was probed before
		for _, percent := range memoryLimits {
			env := "A="
			if !known {
				env = "XDG_CACHE_HOME=" + t.TempDir()
			}
			limit := free.Addresses / 100 * percent
			what := fmt.Sprintf("%d MiB, %d%% of what the task takes, probed before: %v", limit>>20, percent, known)
			got := do.inChild(t, fmt.Sprintf("ulimit -v %d;", limit>>10), env)
			assert.NoError(t, got.spoke(), what)
			switch {
			case got.code != 0:
				messages++
			case got.Error != "":
				errors++
				assert.False(t, got.Damaged, "%s: %s", what, got.Error)
			default:
				done++
			}
		}
	}
	assert.Positive(t, done, "runs that were done, of limits up to %d%%", memoryLimits[len(memoryLimits)-1])
	assert.Positive(t, errors+messages, "runs that a limit ended")
	t.Logf("F52: %d MiB without a limit; %d limits: %d errors, %d messages, %d done, 0 deaths without a word",
		free.Addresses>>20, 2*len(memoryLimits), errors, messages, done)
}
