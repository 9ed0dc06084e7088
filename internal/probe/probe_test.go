package probe_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/pjrt"
	"github.com/lazo-ml/lazo/internal/probe"
)

func TestWorkingPlugin(t *testing.T) {
	report, err := probe.Run(t.Context(), cpuPlugin(t))
	require.NoError(t, err)
	assert.Equal(t, "cpu", report.Platform)
	assert.GreaterOrEqual(t, report.Version.Minor, pjrt.MinMinor)
	assert.NotEmpty(t, report.Devices)
	noChildren(t)
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	path := build(t, constructor(`for (;;) pause();`))
	time.AfterFunc(300*time.Millisecond, cancel)
	_, err := probe.Run(ctx, path)
	require.ErrorIs(t, err, context.Canceled)
	noChildren(t)
}

// wantTyped checks F23: this process lives, the error is typed and names the file, and nothing is left.
func wantTyped(t *testing.T, path string, err error) *probe.Error {
	t.Helper()
	var typed *probe.Error
	require.ErrorAs(t, err, &typed)
	assert.Equal(t, path, typed.Path)
	assert.Contains(t, err.Error(), path)
	assert.Less(t, len(err.Error()), 8<<10)
	noChildren(t)
	return typed
}

// Root can read every file, so the test probes as another user.
func TestF23_UnreadablePlugin(t *testing.T) {
	path := build(t, table(pjrt.MinTableSize, pjrt.Major, pjrt.MinMinor))
	for dir := filepath.Dir(path); dir != filepath.Clean(os.TempDir()); dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // the file is reachable, but not readable
	}
	require.NoError(t, os.Chmod(path, 0))
	cmd := helper(path)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	out, err := cmd.Output()
	require.NoError(t, err)
	var got outcome
	require.NoError(t, json.Unmarshal(out, &got))
	assert.True(t, got.Typed && got.Damaged, "%+v", got)
	assert.Contains(t, got.Text, "permission denied")
	t.Logf("F23: 1 case: %s", got.Text)
}

func TestF24_WrongABI(t *testing.T) {
	plugin := cpuPlugin(t)
	const size, major, minor = pjrt.MinTableSize, pjrt.Major, pjrt.MinMinor
	known, err := probe.Run(t.Context(), plugin)
	require.NoError(t, err)
	real := known.Version.StructSize
	rows := []struct {
		name, source string
		got          pjrt.Version // expected in the error
		ok           bool
	}{
		{"newer major", table(size, major+1, 0), pjrt.Version{Major: 1, StructSize: size}, false},
		{"newer major of the real plugin", wrapper(plugin, major+1, minor, 0), pjrt.Version{Major: 1, Minor: minor, StructSize: real}, false},
		{"minor too old", table(size, major, minor-1), pjrt.Version{Minor: minor - 1, StructSize: size}, false},
		{"ancient", table(200, major, 10), pjrt.Version{Minor: 10, StructSize: 200}, false},
		{"table too short for its functions", table(size-8, major, minor), pjrt.Version{Minor: minor, StructSize: size - 8}, false},
		{"table too short for its version", table(24, major, minor), pjrt.Version{StructSize: 24}, false},
		{"table of no size", table(0, major, minor), pjrt.Version{}, false},
		{"negative version", table(size, -1, -1), pjrt.Version{Major: -1, Minor: -1, StructSize: size}, false},
		{"newer minor, longer table", wrapper(plugin, major, minor+100, 800), pjrt.Version{}, true},
	}
	refused := 0
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			path := build(t, row.source)
			_, err := probe.Run(t.Context(), path)
			if row.ok {
				require.NoError(t, err)
				return
			}
			failure := wantTyped(t, path, err)
			assert.Equal(t, pjrt.ErrABI, failure.Kind)
			var abi *pjrt.ABIError
			require.ErrorAs(t, err, &abi)
			assert.Equal(t, row.got, abi.Got)
			assert.Contains(t, err.Error(), "has "+row.got.String())
			assert.Contains(t, err.Error(), "needs 0.81")
			refused++
		})
	}
	t.Logf("F24: %d wrong versions refused, each error with both versions; 1 newer minor accepted; 0 crashes", refused)
}
