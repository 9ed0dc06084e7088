package pretrained_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/pretrained"
)

// Blocks of each type have exactly the numbers of Python's gguf, in any rows.
func TestGGUF_blocks(t *testing.T) {
	const path = "testdata/gguf/blocks.gguf"
	want, _ := readFile(t, "testdata/gguf/blocks.safetensors")
	require.Len(t, want, 13)
	for kind, of := range want {
		row := len(of.data) / of.Dims[0]
		for _, rows := range [][2]int{{0, of.Dims[0]}, {1, 4}, {5, 6}, {2, 2}} {
			got, err := pretrained.GGUFRows(path, kind, rows[0], rows[1])
			require.NoError(t, err, kind)
			switch kind {
			case "F16", "BF16":
				wide := []byte{}
				for ; len(got) > 0; got = got[2:] {
					bits := binary.LittleEndian.Uint16(got)
					x := float16.FromBits(bits).Float32()
					if kind == "BF16" {
						x = bfloat16.FromBits(bits).Float32()
					}
					wide = append(wide, safetensors.Bytes([]float32{x})...)
				}
				got = wide
			}
			require.True(t, bytes.Equal(of.data[rows[0]*row:rows[1]*row], got), "%s, rows %v", kind, rows)
		}
	}
	texts, err := pretrained.GGUFValue(path, "texts")
	require.NoError(t, err)
	require.Equal(t, []string{"a", "", "é"}, texts)
}

// Damaged files are errors, without a panic or a large allocation.
func TestGGUF_hostile(t *testing.T) {
	whole, err := os.ReadFile("testdata/gguf/llama.gguf")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "x.gguf")
	open := func(data []byte) error {
		require.NoError(t, os.WriteFile(path, data, 0o600))
		_, err := pretrained.Open(t.Context(), path)
		return err
	}
	require.NoError(t, open(whole))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	number := func(n uint64) string { return string(binary.LittleEndian.AppendUint64(nil, n)) }
	short := func(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }
	text := func(s string) string { return number(uint64(len(s))) + s }
	header := func(tensors, values uint64) string { return "GGUF" + short(3) + number(tensors) + number(values) }
	tensor := func(rank uint32, n uint64, kind uint32, at uint64) string {
		return header(1, 0) + text("t") + short(rank) + number(n) + short(kind) + number(at)
	}
	for _, row := range []struct{ data, want string }{
		{"", "at byte 0"},
		{"GGML", `begins with "GGML"`},
		{"GGUF" + short(1), "the version is 1"},
		{"GGUF\x00\x00\x00\x03", "the version is 50331648, expected 2 or 3, little-endian"},
		{header(1<<60, 0), "announces 1152921504606846976 values"},
		{header(0, 1<<60), "announces 1152921504606846976 values"},
		{header(0, 1) + number(1<<62) + "aaaaaaaa", "ends within a value"},
		{header(0, 1) + text("a") + short(99), "its type is 99"},
		{header(0, 1) + text("a") + short(9) + short(9) + number(1), "a list of the type 9"},
		{header(0, 1) + text("a") + short(9) + short(8) + number(1<<58), "announces"},
		{header(0, 1) + text("a") + short(9) + short(12) + number(1<<61), "announces"},
		{header(0, 2) + text("a") + short(4) + short(1) + text("a") + short(4) + short(1) + "    ", "listed twice"},
		{tensor(9, 1, 0, 0), "has 9 axes"},
		{tensor(1, 0, 0, 0), "an axis of 0"},
		{tensor(1, 1<<40, 0, 0), "an axis of 1099511627776"},
		{tensor(1, 8, 16, 0), "is of the type 16, expected one of BF16, F16, F32, Q2_K"},
		{tensor(1, 32, 2, 0), "has rows of 32 numbers in Q4_0"},
		{tensor(1, 8, 0, 1), "expected a multiple of 32"},
		{tensor(1, 8, 0, 1<<63), "is at 9223372036854775808"},
		{tensor(1, 1<<30, 0, 0), "expected at most the file's"},
		{header(1, 0) + text("t") + short(4) + number(1<<30) + number(1<<30) + number(1<<30) + number(1<<30) + short(0) + number(0), "more than"},
		{header(0, 1) + text("general.alignment") + short(4) + short(0) + "        ", "general.alignment is 0"},
		{header(0, 1) + text("general.architecture") + short(8) + text("gpt5"), `general.architecture is "gpt5"`},
		{header(0, 1) + text("general.architecture") + short(4) + short(1), `general.architecture is of the type uint64, expected string`},
	} {
		require.ErrorContains(t, open([]byte(row.data)), row.want)
	}
	begin := len(header(0, 0))
	with := func(value string) []byte { // before the others; the tensors move by a multiple of the alignment
		tensors, values := binary.LittleEndian.Uint64(whole[8:]), binary.LittleEndian.Uint64(whole[16:])
		pad := 96 - len(value) - len(text("x")+short(8)+number(0))
		value += text("x") + short(8) + text(strings.Repeat("x", pad))
		return append([]byte(header(tensors, values+2)+value), whole[begin:]...)
	}
	require.NoError(t, open(with(text("llama.attention.causal")+short(7)+"\x01")))
	for _, row := range []struct{ data, want string }{
		{text("llama.attention.causal") + short(7) + "\x00", `"llama.attention.causal" is "false", expected true`},
		{text("llama.attention.scale") + short(6) + short(0x3f000000), `"llama.attention.scale" is "0.5", expected none: the key is not implemented`},
		{text("llama.rope.scale_linear") + short(6) + short(0x40800000), `"llama.rope.scale_linear" is "4", expected none`},
		{text("llama.logit_scale") + short(6) + short(0x40800000), `expected none`},
		{text("llama.rope.scaling.factor") + short(6) + short(0xbf800000), `the file's metadata: factor is "-1", expected`}, // linear without a type
		{text("llama.rope.scaling.type") + short(4) + short(1), `llama.rope.scaling.type is of the type uint64, expected string`},
		{text("llama.attention.key_length") + short(5) + short(4), `llama.attention.key_length is of the type int64, expected uint64`},
		{text("split.count") + short(2) + "\x03\x00", `"split.count" is "3", expected 1`},
		{text("llama.rope.dimension_count") + short(4) + short(2), `llama.rope.dimension_count is 2, expected the width of a head, 4`},
	} {
		require.ErrorContains(t, open(with(row.data)), row.want)
	}
	keys := ""
	for i := range 3000 {
		keys += text(fmt.Sprintf("llama.a%d", i)) + short(7) + "\x01"
	}
	err = open([]byte(header(0, 3001) + text("general.architecture") + short(8) + text("llama") + keys))
	require.ErrorContains(t, err, "and 2990 more")
	twice := bytes.Replace(whole, []byte("blk.1.attn_norm.weight"), []byte("blk.0.attn_norm.weight"), 1)
	require.ErrorContains(t, open(twice), "is listed twice")
	twice = bytes.Replace(whole, []byte("token_embd.weight"), []byte("model.norm.weight"), 1)
	require.ErrorContains(t, open(twice), `the tensors "model.norm.weight" and "output_norm.weight" are both "model.norm.weight" of transformers`)
	for n := 0; n < len(whole)-1; n += 1 + n/64 {
		require.Error(t, open(whole[:n]), "%d bytes", n)
	}
	for i := range 2500 { // each byte of the header
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x81
		_ = open(damaged) // a name or a number that nothing depends on may change
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30))
}
