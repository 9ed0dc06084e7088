package safetensors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Every byte of a file changed to every other value. The header's checks find most; a name or a type that has become
// another valid one, and elements, are found by their sums.
//
//lazo:norace
func TestF03_EveryByteFlipped(t *testing.T) {
	file := sample(t)
	want, err := sums(file)
	require.NoError(t, err)
	refused, bySum := 0, 0
	for i := range file {
		for flip := 1; flip < 256; flip++ {
			damaged := slices.Clone(file)
			damaged[i] ^= byte(flip)
			got, err := sums(damaged)
			if err != nil {
				require.ErrorAs(t, err, new(*safetensors.FormatError), "byte %d becomes 0x%02x", i, damaged[i])
				refused++
				continue
			}
			require.NotEqual(t, want, got, "byte %d becomes 0x%02x", i, damaged[i])
			bySum++
		}
	}
	t.Logf("%d of %d flips found: %d by the header's checks, %d by a checksum", refused+bySum, 255*len(file), refused, bySum)
}

func TestSort(t *testing.T) {
	list := []safetensors.Tensor{
		{Name: "b", DType: safetensors.U8}, {Name: "z", DType: safetensors.U64}, {Name: "b", DType: safetensors.F32},
		{Name: "a", DType: safetensors.F32}, {Name: "flag", DType: safetensors.Bool}, {Name: "B", DType: safetensors.F32},
		{Name: "h", DType: safetensors.BF16}, {Name: "c", DType: safetensors.C64},
	}
	safetensors.Sort(list)
	var order []string
	for _, tensor := range list {
		order = append(order, tensor.DType.String()+" "+tensor.Name)
	}
	require.Equal(t, []string{"U64 z", "C64 c", "F32 B", "F32 a", "F32 b", "BF16 h", "U8 b", "BOOL flag"}, order)
}

func TestDType(t *testing.T) {
	require.Len(t, allDTypes(), 22)
	for _, d := range allDTypes() {
		parsed, err := safetensors.ParseDType(d.String())
		require.NoError(t, err)
		require.Equal(t, d, parsed)
		text, err := json.Marshal(d)
		require.NoError(t, err)
		require.Equal(t, `"`+d.String()+`"`, string(text))
		var back safetensors.DType
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, d, back)
	}
	for _, name := range []string{"", "f32", "F128", "U4", "BOOL ", "F32\x00"} {
		_, err := safetensors.ParseDType(name)
		require.ErrorContains(t, err, "safetensors: unknown dtype")
	}
	for _, d := range []safetensors.DType{0, 23, 255} {
		require.Zero(t, d.Bits())
		require.Contains(t, d.String(), "DType(")
		_, err := json.Marshal(d)
		require.ErrorContains(t, err, "not a dtype")
	}
}

//lazo:norace
func TestWriterRefusesTensors(t *testing.T) {
	many := make([]safetensors.Tensor, 1_000_001)
	long := make([]safetensors.Tensor, 26_000) // of 4 kB: more than 100 MB
	for i := range long {
		long[i] = safetensors.Tensor{Name: strings.Repeat("n", 4080) + string(rune(0x10000+i)), DType: safetensors.U8}
	}
	one := func(name string, d safetensors.DType, dims ...int) []safetensors.Tensor {
		return []safetensors.Tensor{{Name: name, DType: d, Dims: dims}}
	}
	for name, c := range map[string]struct {
		tensors []safetensors.Tensor
		message string
		limit   bool
	}{
		"no dtype":           {one("w", 0), `DType(0) is not a dtype`, false},
		"unknown dtype":      {one("w", 99), `DType(99) is not a dtype`, false},
		"negative":           {one("w", safetensors.F32, 2, -1), `axis 1 of [2 -1] has the length -1`, false},
		"overflow":           {one("w", safetensors.F32, math.MaxInt, 2), "overflows an integer", true},
		"overflow in bits":   {one("w", safetensors.F64, 1<<57), "overflows an integer", true},
		"overflow and empty": {one("w", safetensors.F64, 0, 1<<40, 1<<40), "overflows an integer", true},
		"overflow of all":    {append(one("a", safetensors.U8, 1<<59), overflow()...), "the total size overflows", true},
		"half a byte":        {one("w", named("F4"), 3), "take 12 bits, expected whole bytes", false},
		"six bits":           {one("w", named("F6_E2M3"), 2), "take 12 bits, expected whole bytes", false},
		"metadata's name":    {one("__metadata__", safetensors.U8), "taken by the metadata", false},
		"not UTF-8":          {one("a\xff", safetensors.U8), "not valid UTF-8", false},
		"long name":          {one(strings.Repeat("n", 4097), safetensors.U8), "a name of 4097 bytes, expected at most 4096", true},
		"rank":               {one("w", safetensors.U8, make([]int, 33)...), "33 axes, expected at most 32", true},
		"twice":              {append(one("w", safetensors.U8), one("w", safetensors.I8)...), "a second one of this name", false},
		"too many":           {many, "expected at most 1000000", true},
		"header":             {long, "the header takes", true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			_, err := safetensors.NewWriter(&out, c.tensors, nil)
			require.ErrorContains(t, err, "safetensors: write header: ")
			require.ErrorContains(t, err, c.message)
			require.Equal(t, c.limit, errors.Is(err, safetensors.ErrLimit))
			require.Zero(t, out.Len(), "nothing is written")
			t.Log(err)
		})
	}
	for name, metadata := range map[string]map[string]string{"key": {"\xff": ""}, "value": {"k": "\xff"}} {
		_, err := safetensors.NewWriter(io.Discard, nil, metadata)
		require.ErrorContains(t, err, "not valid UTF-8", name)
	}
}

// The destination fails after each number of bytes.
func TestF05_DestinationFails(t *testing.T) {
	full := errors.New("no space left")
	file := sample(t)
	given, metadata, err := read(file)
	require.NoError(t, err)
	var list []safetensors.Tensor
	for _, c := range given {
		list = append(list, c.Tensor)
	}
	for good := range len(file) {
		w, err := safetensors.NewWriter(&fails{int64(good), full}, list, metadata)
		for _, c := range given {
			if err == nil {
				_, err = w.Write(c.Name, c.data)
			}
		}
		require.ErrorIs(t, err, full)
	}
	t.Logf("%d of %d points of failure are reported with their cause", len(file), len(file))

	w, err := safetensors.NewWriter(short{}, nil, nil)
	require.Nil(t, w)
	require.ErrorIs(t, err, io.ErrShortWrite)
}
