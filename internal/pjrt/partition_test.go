package pjrt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestPartition_refuses(t *testing.T) {
	c := openCPU(t, 2)
	for name, o := range map[string]CompileOptions{
		"one partition": {SPMD: true, Partitions: 1}, "without SPMD": {Partitions: 2}, "replicas": {SPMD: true, Partitions: 2, Replicas: 2},
	} {
		_, err := c.Partition([]byte(tinyProgram), o)
		require.ErrorIs(t, err, ErrInvalidArgument, name)
		require.ErrorContains(t, err, "pjrt: partition: ", name)
	}
	module, err := c.Partition([]byte(tinyProgram), CompileOptions{SPMD: true, Partitions: 2})
	require.NoError(t, err)
	require.NotEmpty(t, module)
}

func TestDumped(t *testing.T) {
	dir := t.TempDir()
	_, err := dumped(dir)
	require.ErrorContains(t, err, "0 files of the pass spmd-partitioning, expected 1")
	write := func(name string, dump []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), dump, 0o600))
	}
	const file = "module.after_spmd-partitioning.x.hlo.pb"
	other := protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.VarintType), 3)
	write(file, other)
	_, err = dumped(dir)
	require.ErrorContains(t, err, "no module in the file")
	whole := protowire.AppendBytes(protowire.AppendTag(other, 1, protowire.BytesType), []byte("module"))
	write(file, whole)
	module, err := dumped(dir)
	require.NoError(t, err)
	require.Equal(t, "module", string(module))
	write(file, whole[:len(whole)-1])
	_, err = dumped(dir)
	require.Error(t, err, "a part of it, as on a full disk")
	write("other."+file, whole)
	_, err = dumped(dir)
	require.ErrorContains(t, err, "2 files of the pass")
}
