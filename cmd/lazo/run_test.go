package main_test

import (
	"bytes"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRun(t *testing.T) {
	const ranks = `echo rank $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE, start $LAZO_ATTEMPT "$@"; `
	for _, row := range []struct {
		args []string
		want result
	}{
		{[]string{"run", "-np", "2", "sh", "-c", ranks, "x", "-np", "7"}, result{0, "rank 0 of 2, start 0 -np 7\n", ""}},
		{[]string{"run", "--np=2", "--", "sh", "-c", ranks + "exit 75"}, result{75, "rank 0 of 2, start 0\n", ""}},
		{[]string{"run", "-n", "1", "-restarts", "1", "sh", "-c", ranks + "exit $((1 - LAZO_ATTEMPT))"},
			result{0, "rank 0 of 1, start 0\nrank 0 of 1, start 1\n", "lazo run: start 1 of 2 ended with exit code 1: again in 250ms, on 1 ranks\n"}},
		{[]string{"run", "-np", "2", "-no-mpi", "-v", "sh", "-c", "[ $LAZO_RANK = 0 ] || { echo one; echo bad >&2; }"}, result{0, "[1] one\n", "[1] bad\n"}},
		{[]string{"run", "-np", "2", "-mpirun", "/nowhere/mpirun", "true"}, result{1, "", "lazo: launch: stat /nowhere/mpirun: no such file or directory\n"}},
	} {
		got := run(t, row.args...)
		if row.want.code == 75 { // nothing was said by the ranks, so mpirun's words are not held back
			require.Contains(t, got.stderr, "75", row.args)
			got.stderr = ""
		}
		if row.want.code == 1 {
			require.Contains(t, got.stderr, "/nowhere/mpirun", row.args)
			got.stderr = row.want.stderr
		}
		if len(row.args) > 3 && row.args[3] == "-restarts" {
			require.Contains(t, got.stderr, row.want.stderr)
			got.stderr = row.want.stderr
		}
		require.Equal(t, row.want, got, row.args)
	}
	for _, args := range [][]string{{"run", "true"}, {"run", "-np", "2"}, {"run", "-np", "x", "true"}} {
		require.Equal(t, 2, run(t, args...).code, args)
	}
}

// Ctrl-C ends the ranks in order, a closed terminal too (S54), and a killed `lazo run` leaves none running.
func TestRun_ends(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		if signal == syscall.SIGHUP && signals.Ignored(signal) {
			continue // go test runs under nohup, and so does lazo
		}
		for _, way := range [][]string{{"-np", "2"}, {"-np", "2", "-no-mpi"}} {
			dir := t.TempDir()
			var stdout, stderr bytes.Buffer
			script := `trap 'echo saved; exit 130' INT TERM; touch ` + dir + `/$$; while :; do sleep 0.05; done`
			cmd := exec.Command(lazo, append(append([]string{"run"}, way...), "sh", "-c", script)...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			var pids []string
			require.Eventually(t, func() bool {
				pids, _ = filepath.Glob(dir + "/*")
				return len(pids) == 2
			}, time.Minute, 10*time.Millisecond)
			require.NoError(t, cmd.Process.Signal(signal))
			require.Error(t, cmd.Wait())
			if signal != syscall.SIGKILL {
				require.Equal(t, 128+int(signal), cmd.ProcessState.ExitCode())
				require.Equal(t, "saved\n", stdout.String())
				require.Contains(t, stderr.String(), "lazo run: "+signal.String()+": the ranks receive the signal ")
			}
			require.Eventually(t, func() bool {
				for _, pid := range pids {
					if state, err := os.ReadFile("/proc/" + filepath.Base(pid) + "/stat"); err == nil && !bytes.Contains(state, []byte(") Z")) {
						return false
					}
				}
				return true
			}, time.Minute, 10*time.Millisecond, "%v %v", signal, way)
		}
	}
}

// The ranks continue without a reader of the output, as after | head.
func TestRun_withoutAReader(t *testing.T) {
	for _, way := range []string{"-verbose", "-no-mpi"} {
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		c := exec.Command(lazo, "run", "-np", "2", way, "sh", "-c", "echo out; echo error >&2; sleep 0.2; echo more; echo error >&2; touch end")
		c.Dir, c.Stdout, c.Stderr = t.TempDir(), writer, writer
		require.NoError(t, c.Run())
		require.FileExists(t, filepath.Join(c.Dir, "end"))
		require.NoError(t, writer.Close())
	}
}
