package pjrt

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// threads returns the name and the blocked signals of each thread of the process.
func threads(t *testing.T) map[string]string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/self/task/*")
	require.NoError(t, err)
	found := map[string]string{}
	for _, dir := range dirs {
		status, err := os.ReadFile(filepath.Join(dir, "status"))
		if err != nil {
			continue // it has ended
		}
		fields := map[string]string{}
		for line := range strings.Lines(string(status)) {
			name, value, _ := strings.Cut(line, ":")
			fields[name] = strings.TrimSpace(value)
		}
		found[filepath.Base(dir)+" "+fields["Name"]] = fields["SigBlk"]
	}
	return found
}

// Threads that a client, a compilation and a run started block all signals but those of faults, which would end the
// process silently if blocked.
func TestR20_threadsOfThePluginTakeFaultsAlone(t *testing.T) {
	c := openCPU(t, 2)
	call, _ := stateCall(t, c, 2, 1<<20)
	_, err := call.Run()
	require.NoError(t, err)
	own := filepath.Base(os.Args[0])
	own = own[:min(len(own), 15)] // the kernel truncates names
	count := 0
	for name, blocked := range threads(t) {
		if _, comm, _ := strings.Cut(name, " "); comm == own {
			continue // Go's threads have the process's name; XLA's do not
		}
		mask, err := strconv.ParseUint(blocked, 16, 64)
		require.NoError(t, err)
		assert.NotZero(t, mask&(1<<(syscall.SIGPROF-1)), "%s takes the profiler's signal: blocked are %s", name, blocked)
		for _, fault := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGILL, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGSYS} {
			assert.Zero(t, mask&(1<<(fault-1)), "%s blocks %v", name, fault)
		}
		count++
	}
	t.Log(fmt.Sprint(count), "threads of the plugin")
	require.Positive(t, count)
}
