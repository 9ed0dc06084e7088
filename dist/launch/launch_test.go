package launch_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/dist"
	"github.com/lazo-ml/lazo/dist/launch"
)

// ways to start ranks. Each has the variable of the rank in $R.
var ways = map[string]func(*launch.Options){
	"MPI":    func(o *launch.Options) { o.Command[2] = "R=$OMPI_COMM_WORLD_RANK; " + o.Command[2] },
	"no MPI": func(o *launch.Options) { o.NoMPI, o.Command[2] = true, "R=$LAZO_RANK; "+o.Command[2] },
}

func shell(text string) launch.Options {
	return launch.Options{N: 2, Command: []string{"sh", "-c", text}, Grace: 20 * time.Second}
}

// run returns the output and the exit code.
func run(t *testing.T, way func(*launch.Options), o launch.Options) (stdout, stderr string, code int) {
	t.Helper()
	var out, said bytes.Buffer
	o.Stdout, o.Stderr = &out, &said
	way(&o)
	err := launch.Run(t.Context(), o)
	if failed := (*launch.ExitError)(nil); errors.As(err, &failed) {
		code = failed.Code
	} else {
		require.NoError(t, err)
	}
	return out.String(), said.String(), code
}

func sorted(text string) []string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return lines
}

func TestRun_codes(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			_, _, code := run(t, way, shell("exit 76"))
			require.Equal(t, 76, code)
			_, _, code = run(t, way, shell("kill -KILL $$"))
			require.Equal(t, 128+9, code)
			_, said, code := run(t, way, launch.Options{N: 2, Command: []string{"sh", "-c", "exec /nowhere/program"}})
			require.Equal(t, 127, code)
			require.Contains(t, said, "/nowhere/program")
		})
	}
}

// A warning that all ranks have is shown once, as rank 0 has it; what only one has is shown, and with Verbose all are.
func TestRun_warnings(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			const says = `[ $R = 1 ] || sleep 0.2; echo "time=2026-01-01T00:00:0$R.5+01:00 level=WARN msg=same" >&2; echo "2026/01/01 00:00:0$R WARN of $R" >&2; echo error >&2; sleep 0.3`
			_, said, code := run(t, way, shell(says))
			require.Zero(t, code)
			require.Equal(t, []string{"2026/01/01 00:00:00 WARN of 0", "[1] 2026/01/01 00:00:01 WARN of 1", "[1] error", "error", "time=2026-01-01T00:00:00.5+01:00 level=WARN msg=same"}, sorted(said))
			o := shell(says)
			o.Verbose = true
			_, said, _ = run(t, way, o)
			require.Equal(t, 2, strings.Count(said, "msg=same"))
		})
	}
}

// A rank that a signal ends is named, also if a rank has written to standard error.
func TestRun_killedAfterALine(t *testing.T) {
	_, said, code := run(t, ways["MPI"], shell(`[ $R = 0 ] && exec sleep 20; echo loading >&2; kill -9 $$`))
	require.Equal(t, 128+9, code)
	require.Contains(t, said, "[1] loading\n")
	require.Regexp(t, `process rank 1 .*\s+signal 9 \(Killed\)`, said)
}

// Lines that wait for rank 0 come in the order in which they were written, with those between them.
func TestRun_order(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			o := shell(`[ $R = 1 ] || exit 0; for i in 1 2 3 4 5 6 7 8; do echo "2026/01/01 00:00:00 step $i" >&2; echo "  and $i" >&2; echo "after $i" >&2; done`)
			_, said, code := run(t, way, o)
			require.Zero(t, code)
			want := ""
			for i := range 8 {
				want += fmt.Sprintf("[1] 2026/01/01 00:00:00 step %d\n[1]   and %d\n[1] after %d\n", i+1, i+1, i+1)
			}
			require.Equal(t, want, said)
		})
	}
}

// A rank that joined and did not leave is a job that failed, whatever the launcher's exit code: MPICH's gives that of
// the rank, which may be 0.
func TestRun_joinedAndNotLeft(t *testing.T) {
	_, said, code := run(t, ways["MPI"], shell(`[ $R = 0 ] || touch $LAZO_RUN/$R.joined`))
	require.Equal(t, dist.ExitLost, code)
	require.Contains(t, said, "lazo run: the job was lost: rank 1 ended without Job.Close, and mpirun ended with exit code 0")
	_, _, code = run(t, ways["MPI"], shell(`touch $LAZO_RUN/$R.joined; rm $LAZO_RUN/$R.joined`))
	require.Zero(t, code)
}

// mpirunOf returns the path of a script. No process starts while the file is open: it would inherit it, and the script
// could not be executed (text file busy).
func mpirunOf(t *testing.T, script string) string {
	path := filepath.Join(t.TempDir(), "mpirun")
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700))
	return path
}

// An mpirun that does not end after its ranks, as Open MPI 5.0.11's does now and then where several fail at once, is
// killed. The job has the exit code of the rank that failed, or was lost if mpirun does not say which did.
func TestRun_mpirunHangs(t *testing.T) {
	for says, want := range map[string]int{
		"prterun detected that one or more processes exited with non-zero status,\nthus causing the job to be terminated. The first process to do so was:\n\n   Process name: [prterun-vm-1855@1,1]\n   Exit code:    3": 3,
		"prterun noticed that process rank 1 with PID 1580 on node vm exited on\nsignal 9 (Killed).":                                                                                                                     128 + 9,
		"mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 11 (Segmentation fault).":                                                                                                             128 + 11, // Open MPI 4
		"prterun noticed that process rank 1 with PID 1580 on node host.example.org\nexited on signal 9 (Killed).":                                                                                                       128 + 9,
		"A daemon died unexpectedly on signal 9  while attempting to\nlaunch so we are aborting.":                                                                                                                        dist.ExitLost,
		"": dist.ExitLost,
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			path := mpirunOf(t, `[ $1 != --version ] || { echo "mpirun (Open MPI) 5.0.0"; exit; }
while [ $1 != sh ]; do shift; done
for r in 0 1; do OMPI_COMM_WORLD_RANK=$r "$@" & done
echo "`+says+`"
exec sleep 25
`)
			o := shell("exit 3")
			o.Mpirun = path
			_, said, code := run(t, ways["MPI"], o)
			require.Equal(t, want, code)
			require.Equal(t, want == dist.ExitLost, strings.Contains(said, "lazo run: mpirun did not end within 10s of its last rank: it was killed"))
		})
	}
}

// The launcher itself fails.
func TestRun_mpirunFails(t *testing.T) {
	for script, want := range map[string]int{
		`[ $1 != --version ] || { echo "HYDRA build details:"; exit; }; echo "[mpiexec@a] main: process manager error waiting for completion"; exit 255`: dist.ExitLost,
		`[ $1 != --version ] || { echo "HYDRA build details:"; exit; }; echo "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 1850 RUNNING AT vm
=   EXIT CODE: 9
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)
[mpiexec@a] main: process manager error waiting for completion"; exit 255`: 128 + 11,
		`[ $1 != --version ] || { echo "Open MPI"; exit; }; echo "   Exit code:    76"; kill -KILL $$`: 76,
	} {
		path := mpirunOf(t, script)
		o := shell("")
		o.Mpirun = path
		_, said, code := run(t, ways["MPI"], o)
		require.Equal(t, want, code, said)
		require.Equal(t, strings.Contains(script, "kill"), strings.Contains(said, "lazo run: mpirun itself was ended by the signal \"killed\"\n"), said)
	}
}

func TestRun_restarts(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			// Rank 0 alone fails: mpirun ends all at the first that does, and one that has not said a word by then is silent.
			o := shell(`[ $R = 0 ] || exit 0; echo start $LAZO_ATTEMPT of $LAZO_JOB on ${OMPI_COMM_WORLD_SIZE:-$LAZO_SIZE}; exit $((6 - 3 * LAZO_ATTEMPT))`)
			o.N, o.Restarts, o.Min = 3, 5, 2
			out, said, code := run(t, way, o)
			require.Zero(t, code)
			lines := sorted(out)
			job := strings.Fields(lines[0])[3]
			require.Len(t, job, 16)
			require.Equal(t, []string{"start 0 of " + job + " on 3", "start 1 of " + job + " on 2", "start 2 of " + job + " on 2"}, lines)
			require.Contains(t, said, "start 1 of 6 ended with exit code 6: again in 250ms, on 2 ranks\n")
			require.Contains(t, said, "start 2 of 6 ended with exit code 3: again in 500ms, on 2 ranks\n")
		})
	}
	o := shell("exit 4")
	o.Restarts = 2
	err := launch.Run(t.Context(), func() launch.Options { ways["no MPI"](&o); return o }())
	failed := (*launch.ExitError)(nil)
	require.ErrorAs(t, err, &failed)
	require.Equal(t, launch.ExitError{Code: 4, Attempts: 3}, *failed)
	require.EqualError(t, err, "launch: the job ended with exit code 4, after 3 starts")
}

// S54: errors that each start would meet again end the job at the first, a crash with the same exit code does not.
func TestS54_noRestartOfWhatRepeats(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			for text, why := range map[string]string{
				"exit 2":                "the program was used wrongly",
				"exec /nowhere/program": "the program cannot be started",
				"exit 77":               "the ranks do not run the same program",
			} {
				o := shell(text)
				o.N, o.Restarts = 1, 2
				_, said, code := run(t, way, o)
				require.NotZero(t, code)
				require.Contains(t, said, fmt.Sprintf("lazo run: start 1 of 3 ended with exit code %d: no restart, since %s\n", code, why))
				require.NotContains(t, said, "start 2")
			}
			for _, verbose := range []bool{false, true} {
				o := shell("echo 'panic: once' >&2; exit $((2 - 2 * LAZO_ATTEMPT))")
				o.N, o.Restarts, o.Verbose = 1, 2, verbose
				_, said, code := run(t, way, o)
				require.Zero(t, code, said)
				require.Contains(t, said, "lazo run: start 1 of 3 ended with exit code 2: again in 250ms, on 1 ranks\n")
			}
		})
	}
}

func TestRun_refuses(t *testing.T) {
	for says, change := range map[string]func(*launch.Options){
		"0 ranks, expected at least 1":    func(o *launch.Options) { o.N = 0 },
		"no command":                      func(o *launch.Options) { o.Command = nil },
		"-1 restarts":                     func(o *launch.Options) { o.Restarts = -1 },
		"at least 3 of 2 ranks":           func(o *launch.Options) { o.Min = 3 },
		"one of the two":                  func(o *launch.Options) { o.Mpirun, o.NoMPI = "mpirun", true },
		"/nowhere/mpirun":                 func(o *launch.Options) { o.Mpirun = "/nowhere/mpirun" },
		"neither Open MPI's nor MPICH's":  func(o *launch.Options) { o.Mpirun = "true" },
		"executable file not found in $P": func(o *launch.Options) { o.NoMPI, o.Command = true, []string{"nosuchprogram"} },
	} {
		o := shell("exit 0")
		change(&o)
		require.ErrorContains(t, launch.Run(t.Context(), o), says)
	}
}
