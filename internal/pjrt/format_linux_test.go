package pjrt

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckFormat(t *testing.T) {
	fake := buildFake(t)
	require.NoError(t, checkFormat(bytes.NewReader(fake), int64(len(fake))))
	half := fake[:len(fake)/2]
	require.ErrorContains(t, checkFormat(bytes.NewReader(half), int64(len(half))), "bytes, truncated or not an ELF file")
	foreign := bytes.Clone(fake)
	foreign[18], foreign[19] = 8, 0 // e_machine: MIPS
	require.ErrorContains(t, checkFormat(bytes.NewReader(foreign), int64(len(foreign))), "it is ET_DYN for EM_MIPS, expected ET_DYN for ")
	core := bytes.Clone(fake)
	core[16] = 4 // e_type
	require.ErrorContains(t, checkFormat(bytes.NewReader(core), int64(len(core))), "it is ET_CORE for ")
	text, err := os.ReadFile("format_linux.go")
	require.NoError(t, err)
	require.Error(t, checkFormat(bytes.NewReader(text), int64(len(text))))
}
