//go:build nightly

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist/launch"
	"github.com/lazo-ml/lazo/internal/plugintest"
)

// One of four ranks is repeatedly killed at a random moment, and the job restarts each time: its final parameters are
// bit-identical to those of a job that was not killed.
func TestF54_ranksKilledAndRestarted(t *testing.T) {
	const ranks, kills = 4, 20
	binary := plugintest.Program(t, ".")
	start := func(dir string, said *bytes.Buffer) chan error {
		ended := make(chan error, 1)
		go func() {
			ended <- launch.Run(t.Context(), launch.Options{N: ranks, Command: []string{binary, "-epochs", "60", "-seed", "3", "-resume", dir},
				Restarts: kills, Stderr: said, Env: []string{"OMPI_MCA_mpi_yield_when_idle=1"}})
		}()
		return ended
	}
	whole, said := t.TempDir(), new(bytes.Buffer)
	require.NoError(t, <-start(whole, said), said)
	last, want := newest(t, whole)

	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	var waited []string
	for killed := 0; killed < kills; {
		dir, said := t.TempDir(), new(bytes.Buffer)
		ended := start(dir, said)
		var err error
		for over := false; !over; {
			select {
			case err = <-ended:
				over = true
			case <-time.After(time.Duration(500+random.IntN(4_000)) * time.Millisecond):
				if list := processesOf(binary); killed < kills && len(list) == ranks {
					pid := list[random.IntN(ranks)]
					require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
					killed++
					waited = append(waited, untilGone(t, list))
				}
			}
		}
		require.NoError(t, err, said)
		step, got := newest(t, dir)
		require.Equal(t, last, step)
		require.Equal(t, want, got, said)
	}
	t.Logf("F54: %d times one of %d ranks was killed: all were gone after %v, and the parameters are those of a job that nobody killed", kills, ranks, waited)
}

// processesOf are those that run a program.
func processesOf(binary string) (list []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == binary {
			pid, _ := strconv.Atoi(strings.Split(link, "/")[2])
			list = append(list, pid)
		}
	}
	return list
}

// untilGone waits until processes have ended, and fails if that takes longer than the deadline and what mpirun needs.
func untilGone(t *testing.T, list []int) string {
	begin := time.Now()
	for _, pid := range list {
		require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil }, 15*time.Second, 5*time.Millisecond, "process %d of a job that lost a rank", pid)
	}
	return fmt.Sprintf("%.1fs", time.Since(begin).Seconds())
}
