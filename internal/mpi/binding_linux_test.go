package mpi

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBindingWarnings(t *testing.T) {
	rows := []struct {
		own, machine, processes int
		yields                  bool
		want                    string
	}{
		{8, 8, 1, false, ""},
		{4, 8, 2, false, ""}, // exactly its share
		{8, 8, 8, true, ""},
		{1, 8, 2, false, "this process may use 1 of 8 processors, and 2 processes share the machine: the launcher bound it: start with mpirun --bind-to none"},
		{1, 8, 1, true, "this process may use 1 of 8"},
		{2, 2, 4, false, "4 processes share 2 processors: each that waits for others keeps one busy"},
		{2, 2, 4, true, "4 processes share 2 processors: they take turns"},
		{0, 8, 1, false, ""},
		{8, 0, 1, false, ""},
	}
	for _, row := range rows {
		got := bindingWarnings(row.own, row.machine, row.processes, row.yields)
		if row.want == "" {
			assert.Empty(t, got, "%+v", row)
			continue
		}
		require.Len(t, got, 1, "%+v", row)
		assert.Contains(t, got[0], row.want)
	}
}

func TestYields(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true, "true": true, "false": false} {
		require.Equal(t, want, yields(func(name string) string {
			require.Equal(t, "OMPI_MCA_mpi_yield_when_idle", name)
			return value
		}), value)
	}
}

func TestAvailableProcessors(t *testing.T) {
	for list, n := range map[string]int{"0-3": 4, "0-3,8\n": 5, "7": 1, "": 0, "a": 0, "3-1": 0} {
		assert.Equal(t, n, countCPUs(list), "%q", list)
	}
	root := t.TempDir() + "/"
	write := func(path, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+path), 0o700))
		require.NoError(t, os.WriteFile(root+path, []byte(text), 0o600))
	}
	assert.Zero(t, available(root))
	write("sys/devices/system/cpu/online", "0-15\n")
	assert.Equal(t, 16, available(root))
	write("proc/self/cgroup", "0::/job\n")
	write("sys/fs/cgroup/job/cpuset.cpus.effective", "0-3\n")
	assert.Equal(t, 4, available(root), "of the container")
}
