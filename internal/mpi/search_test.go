package mpi

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The folder of MPICH's launcher is that of the proxy that started the process, perhaps by a shell.
func TestOfProxy(t *testing.T) {
	proc := t.TempDir()
	for pid, of := range map[string][2]string{"30": {"/bin/sh", "20"}, "20": {"/opt/mpich/bin/hydra_pmi_proxy", "10"}, "10": {"/opt/mpich/bin/mpiexec.hydra", "1"}} {
		require.NoError(t, os.Mkdir(filepath.Join(proc, pid), 0o700))
		require.NoError(t, os.Symlink(of[0], filepath.Join(proc, pid, "exe")))
		require.NoError(t, os.WriteFile(filepath.Join(proc, pid, "stat"), []byte(pid+" (a) b) S "+of[1]+" 7"), 0o600))
	}
	want := []string{"/opt/mpich/lib", "/opt/mpich/lib64", filepath.Join("/opt/mpich/lib", machine)}
	require.Equal(t, want, ofProxy(proc, 30))
	require.Equal(t, want, ofProxy(proc, 20))
	require.Empty(t, ofProxy(proc, 10))
	require.Empty(t, ofProxy(proc, 40))
	require.Empty(t, ofProxy(filepath.Join(proc, "none"), 1))
}

// The search begins with the launcher's folder and skips libraries of other implementations.
func TestSearch(t *testing.T) {
	root := t.TempDir()
	library := func(path string, needs string) {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		flags := []string{`-DTEXT=""`, "-DTHREADS=3"}
		if needs != "" {
			part := fake(t, needs, flags...)
			flags = append(flags, "-Wl,--no-as-needed", part)
		}
		require.NoError(t, os.Rename(fake(t, filepath.Base(path), flags...), file))
	}
	library("opt/five/lib/libmpi.so.40", "libopen-pal.so.80")
	library("opt/four/lib/libmpi.so.40", "libopen-rte.so.40")
	library("opt/mpich/lib/libmpi.so.12", "")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "opt/mpich/bin"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "opt/mpich/bin/mpiexec"), nil, 0o700))
	with := func(by map[string]string, more ...string) map[string]string {
		all := map[string]string{"LD_LIBRARY_PATH": "relative:/opt/four/lib:/nowhere"}
		for name, value := range by {
			all[name] = value
		}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	rows := []struct {
		what string
		env  map[string]string
		want string
	}{
		{"named", with(hydra, "LAZO_MPI", "/my/libmpi.so"), "/my/libmpi.so"},
		{"no launcher", with(nil), "/opt/four/lib/libmpi.so.40"},
		{"where Open MPI 5 is", with(openMPI5), "/opt/five/lib/libmpi.so.40"},
		{"Open MPI 4, behind 5", with(openMPI4, "LD_LIBRARY_PATH", "/opt/five/lib:/opt/four/lib"), "/opt/four/lib/libmpi.so.40"},
		{"beside mpiexec", with(hydra, "PATH", "/bin:/opt/mpich/bin"), "/opt/mpich/lib/libmpi.so.12"},
	}
	for _, row := range rows {
		get := environment(row.env)
		got, err := search(launcherOf(get), get, os.DirFS(root))
		require.NoError(t, err, row.what)
		assert.Equal(t, row.want, got, row.what)
	}
	get := environment(with(hydra))
	_, err := search(launcherOf(get), get, os.DirFS(root))
	assert.EqualError(t, err, "mpi: no MPI library for mpiexec of MPICH, which started this process: found /opt/four/lib/libmpi.so.40, of another MPI: "+
		"name the launcher's library by LAZO_MPI, or use another mpirun")
	_, err = search(launcher{}, environment(nil), os.DirFS(root))
	require.ErrorIs(t, err, ErrNotFound)
	assert.ErrorContains(t, err, "install Open MPI or MPICH")
}
