package xla_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// memoryLimits are limits of addresses in MiB, as ulimit -v sets them; the nightly form has more. The plugin and Go's
// own runtime need some 2,500 of them for the smallest program.
var memoryLimits = []int{300, 1400, 2000, 2300}

// TestF52_memoryLimits: a process that may not have the memory it needs ends with an error or a message, wherever it
// comes to the limit; and the limit is not taken for damage.
func TestF52_memoryLimits(t *testing.T) {
	done, errors, messages := 0, 0, 0
	for _, known := range []bool{false, true} { // whether the plugin was probed before
		for _, limit := range memoryLimits {
			env := "A="
			if !known {
				env = "XDG_CACHE_HOME=" + t.TempDir()
			}
			what := fmt.Sprintf("%d MiB, probed before: %v", limit, known)
			got := task{Bytes: 256 << 20}.inChild(t, fmt.Sprintf("ulimit -v %d;", limit<<10), env)
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
	t.Logf("F52: %d limits: %d errors, %d messages, %d done, 0 deaths without a word", 2*len(memoryLimits), errors, messages, done)
}
