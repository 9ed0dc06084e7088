package export

import (
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/vfs"
)

// A write that fails at any call leaves no folder and no open file.
func TestWrite_failsAtEachCall(t *testing.T) {
	calls := 0
	for n := int64(1); ; n++ {
		m := &vfs.Mem{}
		counted := vfs.Count(vfs.Fail(m, vfs.Rule{N: n, Err: syscall.ENOSPC}))
		err := program().write(counted, "model")
		require.Zero(t, counted.Handles())
		if err == nil {
			_, err := readBack(m)
			require.NoError(t, err)
			break
		}
		calls++
		require.ErrorIs(t, err, syscall.ENOSPC)
		names, err := m.ReadDir(".")
		require.NoError(t, err)
		require.Empty(t, names, "call %d", n)
	}
	require.Greater(t, calls, 10)
	t.Logf("%d calls, each failed once: nothing left", calls)
}

// Whenever the power fails, a visible folder can be loaded, and a written folder is visible.
func TestWrite_lossOfPower(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	m, states, seen := &vfs.Mem{}, 0, 0
	check := func() {
		for _, chance := range []float64{0, 1, 0.5, 0.5, 0.5, 0.5} {
			after := m.Crash(chance, random)
			states++
			if _, err := after.Stat("model"); err != nil {
				continue
			}
			seen++
			_, err := readBack(after)
			require.NoError(t, err)
		}
	}
	require.NoError(t, program().write(vfs.Hook(m, func(c vfs.Call) error {
		if c.Op.Changes() {
			check()
		}
		return nil
	}), "model"))
	require.Positive(t, seen)
	seen = 0
	check()
	require.Equal(t, 6, seen, "once Write has returned it is there")
	t.Logf("%d states after a loss of power, none half written", states)
}
