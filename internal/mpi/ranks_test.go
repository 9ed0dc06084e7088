package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/idle"
	"github.com/lazo-ml/lazo/internal/install"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// rankTest names the test of which a process of a job runs its part.
const rankTest = "LAZO_TEST_RANK_OF"

// passedFolder is the folder where each rank that passes leaves a file.
const passedFolder = "LAZO_TEST_PASSED"

// launcherCommand returns the command of LAZO_TEST_MPIRUN ("mpirun.mpich", "/opt/mpi/bin/mpirun -q"), the mpirun of
// lazo's installed MPI, or the one in PATH.
func launcherCommand(t testing.TB) []string {
	t.Helper()
	if words := strings.Fields(os.Getenv("LAZO_TEST_MPIRUN")); len(words) > 0 {
		return words
	}
	if library, err := install.Find("mpi", ""); err == nil {
		return []string{filepath.Join(filepath.Dir(filepath.Dir(library.Path)), "bin", "mpirun")}
	}
	mpirun, err := exec.LookPath("mpirun")
	require.NoError(t, err, "these tests need an MPI: lazo install mpi, or name an mpirun by LAZO_TEST_MPIRUN")
	return []string{mpirun}
}

// onRanks runs this test again as the ranks of a job, each with part. All ranks must pass.
func onRanks(t *testing.T, ranks int, part func(t *testing.T, w *World)) {
	t.Helper()
	name := t.Name()
	if os.Getenv(rankTest) == name {
		w := join(t)
		require.Equal(t, ranks, w.Size(), "ranks of the job")
		t.Cleanup(func() {
			if err := w.Finalize(); !errors.Is(err, ErrFinalized) { // the test may have called it
				require.NoError(t, err)
			}
			if !t.Failed() { // launchers lose some of a rank's last output
				require.NoError(t, os.WriteFile(filepath.Join(os.Getenv(passedFolder), strconv.Itoa(w.Rank())), nil, 0o600))
			}
		})
		part(t, w)
		return
	}
	if os.Getenv(rankTest) != "" {
		t.SkipNow() // the part of another test
	}
	passed := t.TempDir()
	out, err := job(t, ranks, name, passedFolder+"="+passed)
	require.NoError(t, err, "%s", out)
	files, err := os.ReadDir(passed)
	require.NoError(t, err)
	require.Len(t, files, ranks, "ranks that passed:\n%s", out)
}

// job runs a test as the ranks of a job and returns their output.
func job(t *testing.T, ranks int, name string, env ...string) (string, error) {
	t.Helper()
	command := launcherCommand(t)
	command = append(command, "-np", strconv.Itoa(ranks))
	var names []string
	for part := range strings.SplitSeq(name, "/") {
		names = append(names, "^"+part+"$")
	}
	command = append(command, os.Args[0], "-test.v", "-test.run", strings.Join(names, "/"), "-test.timeout", "20m")
	out, err := jobOf(t, command, append(append(idle.Environment(t), env...), rankTest+"="+name)...).CombinedOutput()
	return string(out), err
}

// jobOf returns the launcher's command with the settings for one machine.
func jobOf(t testing.TB, command []string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", // as in a container
		"OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", // more ranks than processors
		"OMPI_MCA_hwloc_base_binding_policy=none", "PRTE_MCA_hwloc_default_binding_policy=none", "OMPI_MCA_mpi_yield_when_idle=1")
	if filepath.IsAbs(command[0]) { // its library is next to it
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(command[0])+":"+os.Getenv("PATH"))
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

var joined struct {
	sync.Once
	world *World
	err   error
}

// join makes this process a rank until its end.
func join(t testing.TB) *World {
	t.Helper()
	joined.Do(func() {
		var l *Library
		if l, joined.err = Open(""); joined.err == nil {
			joined.world, joined.err = l.Init()
		}
	})
	require.NoError(t, joined.err)
	return joined.world
}

var host = sync.OnceValues(func() (*pjrt.Client, error) {
	plugin, err := install.Find("cpu", "")
	if err != nil {
		return nil, fmt.Errorf("these tests need the CPU plugin: make setup: %w", err)
	}
	for name, value := range pjrt.Environment(plugin.Path, os.Getenv) {
		if err := os.Setenv(name, value); err != nil {
			return nil, err
		}
	}
	p, err := pjrt.Load(plugin.Path)
	if err != nil {
		return nil, err
	}
	for name, function := range (*World)(nil).Handlers() {
		if err := p.RegisterHandler(name, "Host", function); err != nil {
			return nil, err
		}
	}
	return p.NewClient(map[string]any{"cpu_device_count": int64(1)}, nil)
})

// compile compiles StableHLO for this process's device.
func compile(t testing.TB, program string) *pjrt.Executable {
	t.Helper()
	c, err := host()
	require.NoError(t, err)
	e, err := c.Compile([]byte(program), pjrt.CompileOptions{})
	require.NoError(t, err, program)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// run runs a program once and returns its outputs' bytes.
func run(t testing.TB, e *pjrt.Executable, args ...pjrt.Array) [][]byte {
	t.Helper()
	outputs, err := tryRun(t, e, args...)
	require.NoError(t, err)
	return outputs
}

func tryRun(t testing.TB, e *pjrt.Executable, args ...pjrt.Array) (outputs [][]byte, err error) {
	t.Helper()
	c, err := host()
	require.NoError(t, err)
	in := make([]*pjrt.Buffer, len(args))
	for i, a := range args {
		in[i], err = c.Devices()[0].Put(a)
		require.NoError(t, err)
		defer in[i].Close()
	}
	x, err := e.Execute([][]*pjrt.Buffer{in}, pjrt.ExecuteOptions{})
	if err != nil {
		return nil, err
	}
	defer x.Close()
	if err := x.Await(); err != nil {
		return nil, err
	}
	for i, shape := range e.Outputs() {
		size, err := shape.Size()
		require.NoError(t, err)
		data := make([]byte, size)
		if err := x.Outputs[0][i].ToHost(data); err != nil {
			return nil, err
		}
		outputs = append(outputs, data)
	}
	runtime.KeepAlive(in)
	return outputs, nil
}
