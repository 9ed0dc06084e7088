package mpi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fake compiles an MPI library that does nothing.
func fake(t *testing.T, name string, flags ...string) string {
	t.Helper()
	compiler, err := exec.Command("go", "env", "CC").Output()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	args := append([]string{"-shared", "-fPIC", "-Wl,-soname," + name, "-o", path, "testdata/fake.c"}, flags...)
	out, err := exec.Command(strings.TrimSpace(string(compiler)), args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

const fakeOf = "LAZO_TEST_FAKE_OF"

// A process has one library, so each is tried in its own process.
func TestLibraries(t *testing.T) {
	if path := os.Getenv(fakeOf); path != "" {
		l, err := Open(path)
		if err != nil {
			t.Log("open:", err)
			return
		}
		again, err := Open(path)
		require.NoError(t, err)
		require.Same(t, l, again)
		_, err = Open(os.Args[0])
		require.ErrorIs(t, err, ErrTwice)
		t.Log("library:", l.Version(), "by", l.Flavour())
		w, err := l.Init()
		if err != nil {
			t.Log("init:", err)
			return
		}
		t.Log("rank", w.Rank(), "of", w.Size())
		require.NoError(t, w.Finalize())
		return
	}
	const mpich = `-DTEXT="MPICH Version:      4.0.2\nMPICH ABI: 14"`
	rows := []struct{ name, path, want string }{
		{"MPICH", fake(t, "libmpi.so.12", mpich, "-DTHREADS=3"), "library: MPICH 4.0.2 by MPICH"},
		{"Intel MPI", fake(t, "libmpi.so.12", `-DTEXT="Intel(R) MPI Library 2021.11 for Linux* OS"`, "-DTHREADS=3"), "library: Intel MPI 2021.11 by MPICH"},
		{"ABI", fake(t, "libmpi_abi.so.1", mpich, "-DTHREADS=4096"), "library: MPICH 4.0.2 by MPI 5 ABI"},
		{"rank", fake(t, "libmpi.so.12", mpich, "-DTHREADS=3"), "rank 0 of 1"},
		{"one thread", fake(t, "libmpi.so.12", mpich, "-DTHREADS=2"), "(MPICH 4.0.2): the MPI library has no MPI_THREAD_MULTIPLE: programs and the host call it at the same time: use a build of it with threads"},
		{"no start", fake(t, "libmpi.so.12", mpich, "-DTHREADS=3", "-DFAILS=7"), ": start: MPI_Init_thread: no such rank (error 7)"},
		{"no start, no words", fake(t, "libmpi.so.12", mpich, "-DTHREADS=3", "-DFAILS=8"), ": start: MPI_Init_thread: error 8"},
		{"lacks", fake(t, "libmpi.so.12", mpich, "-DTHREADS=3", "-DLACKS"), "not an MPI library that lazo knows: it has no MPI_Barrier"},
		{"unknown", fake(t, "libmpi.so.12", `-DTEXT="Other MPI 1.0"`, "-DTHREADS=3"), `it says "Other MPI 1.0"; lazo knows Open MPI, MPICH, Intel MPI, MVAPICH and libraries named libmpi_abi`},
		{"no library", "library_test.go", "not a library that this machine can load"},
		{"no file", "/nowhere/libmpi.so", "no MPI library: lstat /nowhere: no such file or directory"},
	}
	for _, row := range rows {
		path, err := filepath.Abs(row.path)
		require.NoError(t, err)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLibraries$", "-test.v")
		cmd.Env = append(os.Environ(), fakeOf+"="+path)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", row.name, out)
		assert.Contains(t, string(out), row.want, row.name)
	}

	open := filepath.Join(t.TempDir(), "open")
	require.NoError(t, os.Mkdir(open, 0o700))
	require.NoError(t, os.Chmod(open, 0o777)) // whatever the umask
	path := filepath.Join(open, "libmpi.so.12")
	require.NoError(t, os.Rename(fake(t, "libmpi.so.12", mpich, "-DTHREADS=3"), path))
	_, err := Open(path)
	require.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "not yours alone")
}

func environment(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

var (
	openMPI4 = map[string]string{"OMPI_COMM_WORLD_SIZE": "2", "OMPI_MCA_orte_launch": "1", "PMIX_RANK": "0"}
	openMPI5 = map[string]string{"OMPI_COMM_WORLD_SIZE": "2", "OMPI_VERSION": "5.0.11", "OPAL_PREFIX": "/opt/five", "PMIX_RANK": "0"}
	hydra    = map[string]string{"PMI_RANK": "0", "PMI_SIZE": "2"}
	slurm2   = map[string]string{"PMI_RANK": "0", "SLURM_PROCID": "0"}
	slurmX   = map[string]string{"PMIX_RANK": "0", "SLURM_PROCID": "0"}
)

func TestLaunchersAndLibrariesFit(t *testing.T) {
	const four, five, mpich, intel = "Open MPI v4.1.4, package: Debian", "Open MPI v5.0.11, package: x", "MPICH Version:\t4.0.2", "Intel(R) MPI Library 2021.11 for Linux"
	rows := []struct {
		by   map[string]string
		fit  []string
		name string
	}{
		{nil, []string{four, five, mpich, intel}, ""},
		{openMPI4, []string{four}, "mpirun of Open MPI 4"},
		{openMPI5, []string{five}, "mpirun of Open MPI 5.0.11"},
		{map[string]string{"OMPI_COMM_WORLD_SIZE": "2"}, []string{four, five}, "mpirun of Open MPI"},
		{hydra, []string{mpich, intel}, "mpiexec of MPICH"},
		{slurm2, []string{mpich, intel}, "srun --mpi=pmi2"},
		{slurmX, []string{four, five}, "srun --mpi=pmix"},
	}
	for _, row := range rows {
		by := launcherOf(environment(row.by))
		assert.Equal(t, row.name, by.name)
		for _, text := range []string{four, five, mpich, intel} {
			err := by.check(&Library{path: "/lib/libmpi.so", text: text})
			if strings.Contains(strings.Join(row.fit, "\n"), text) {
				assert.NoError(t, err, "%s with %s", by.name, text)
				continue
			}
			assert.ErrorIs(t, err, ErrLauncher, "%s with %s", by.name, text)
			assert.ErrorContains(t, err, "this process was started by "+row.name+": start it by the mpirun of the library, or name the other library by LAZO_MPI")
		}
	}
	err := launcherOf(environment(hydra)).check(&Library{path: "/lib/libmpi.so.40", text: five})
	assert.EqualError(t, err, "mpi: /lib/libmpi.so.40 is Open MPI 5.0.11: the launcher is of another MPI: this process was started by mpiexec of MPICH: "+
		"start it by the mpirun of the library, or name the other library by LAZO_MPI")
}
