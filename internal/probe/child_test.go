package probe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// When the parent is killed, the child ends itself soon after the deadline.
func TestF23_ParentKilled(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	path := build(t, fmt.Sprintf("#define PID %q\n", pidFile)+
		constructor(`FILE *f = fopen(PID ".new", "w"); fprintf(f, "%d", getpid()); fclose(f); rename(PID ".new", PID); for (;;) pause();`))
	parent := helper(path)
	require.NoError(t, parent.Start())
	var pid []byte
	require.Eventually(t, func() bool {
		var err error
		pid, err = os.ReadFile(pidFile)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.False(t, gone(string(pid)))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return gone(string(pid)) }, time.Minute, 10*time.Millisecond)
}
