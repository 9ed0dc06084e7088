package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCgroupLimit(t *testing.T) {
	for _, row := range []struct {
		name, own string
		files     map[string]string
		limit     uint64
		file      string
	}{
		{"none", "0::/user\n", map[string]string{"user/memory.max": "max\n"}, 0, ""},
		{"version 2", "0::/a/b\n", map[string]string{"a/b/memory.max": "2147483648\n"}, 2 << 30, "a/b/memory.max"},
		{"a group above", "0::/a/b\n", map[string]string{"a/b/memory.max": "max\n", "a/memory.max": "1073741824\n", "memory.max": "2147483648\n"}, 1 << 30, "a/memory.max"},
		{"a container, by names of the host", "0::/../../elsewhere\n", map[string]string{"memory.max": "1073741824\n"}, 1 << 30, "memory.max"},
		{"version 1", "9:cpu,cpuacct:/x\n8:memory:/docker/1\n", map[string]string{"memory/docker/1/memory.limit_in_bytes": "1073741824\n", "cpu,cpuacct/x/memory.limit_in_bytes": "1"}, 1 << 30, "memory/docker/1/memory.limit_in_bytes"},
		{"version 1, no limit", "8:memory:/\n", map[string]string{"memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0, ""},
		{"version 1, in a container", "8:memory:/docker/1\n", map[string]string{"memory/memory.limit_in_bytes": "1073741824\n"}, 1 << 30, "memory/memory.limit_in_bytes"},
		{"nonsense", "x\n:\n\n", nil, 0, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			mount := t.TempDir()
			for name, text := range row.files {
				path := filepath.Join(mount, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			}
			limit, file := cgroupLimit(row.own, mount)
			require.Equal(t, row.limit, limit)
			if row.file != "" {
				row.file = filepath.Join(mount, row.file)
			}
			require.Equal(t, row.file, file)
		})
	}
}
