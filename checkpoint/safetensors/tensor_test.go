package safetensors_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Two tensors of one length change places.
func TestF04_SwappedTensors(t *testing.T) {
	tensor := func(name string, data ...byte) content {
		return content{safetensors.Tensor{Name: name, DType: safetensors.U8, Dims: []int{2}}, data}
	}
	one, err := sums(write(t, []content{tensor("a", 1, 2), tensor("b", 3, 4)}, nil))
	require.NoError(t, err)
	for name, other := range map[string][]content{
		"data":  {tensor("a", 3, 4), tensor("b", 1, 2)},
		"names": {tensor("b", 1, 2), tensor("a", 3, 4)},
		"both":  {tensor("b", 3, 4), tensor("a", 1, 2)}, // the same content in another order: the header tells
	} {
		two, err := sums(write(t, other, nil))
		require.NoError(t, err)
		require.NotEqual(t, one, two, name)
	}
}

// FuzzRoundTrip is TestRoundTrip with the fuzzer choosing.
func FuzzRoundTrip(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		given := tensors().Draw(t, "tensors")
		metadata := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		got, gotMetadata, err := read(write(t, given, metadata))
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(given, got, same...))
		require.Equal(t, metadata, gotMetadata)
	}))
}

// Names are texts: one that would be a path, or a command for a terminal, is returned unchanged and used nowhere else.
func TestF27_NamesAreNoPaths(t *testing.T) {
	var given []content
	for _, name := range []string{"../../etc/passwd", "/etc/passwd", `C:\x`, "a\x00b", ".", "", "\x1b[31m", "a/../b", "\u202etxt", "aux", strings.Repeat("n", 4096)} {
		given = append(given, content{safetensors.Tensor{Name: name, DType: safetensors.U8, Dims: []int{1}}, []byte{byte(len(given))}})
	}
	got, _, err := read(write(t, given, nil))
	require.NoError(t, err)
	require.Equal(t, given, got)
	_, err = open(framed(`{"\u001b[31m\u0000":1}`))
	require.ErrorContains(t, err, `tensor "\x1b[31m\x00": '1'`)
}

func TestF27_Limits(t *testing.T) {
	file := sample(t)
	for name, c := range map[string]struct {
		limits  safetensors.Limits
		message string
	}{
		"header":   {safetensors.Limits{Header: 100}, "bytes, expected at most 100"},
		"tensors":  {safetensors.Limits{Tensors: 4}, "more than 4 tensors"},
		"rank":     {safetensors.Limits{Rank: 1}, "more than 1 axes"},
		"name":     {safetensors.Limits{Name: 3}, "expected at most 3 bytes"},
		"metadata": {safetensors.Limits{Metadata: 1}, "__metadata__ has more than 1 entries"},
	} {
		_, err := safetensors.NewReader(bytes.NewReader(file), int64(len(file)), c.limits)
		require.ErrorContains(t, err, c.message, name)
		require.ErrorIs(t, err, safetensors.ErrLimit, name)
	}
	for _, limits := range []safetensors.Limits{
		{Tensors: 5, Rank: 2, Name: 4, Metadata: 2},
		{Header: -1, Tensors: -1, Rank: -1, Name: -1, Metadata: -1},
		{Header: math.MaxInt64, Tensors: math.MaxInt, Rank: math.MaxInt, Name: math.MaxInt, Metadata: math.MaxInt},
	} {
		_, err := safetensors.NewReader(bytes.NewReader(file), int64(len(file)), limits)
		require.NoError(t, err)
	}
	raised := framed(one(`"dtype":"U8","shape":[`+strings.Repeat("1,", 99)+`1],"data_offsets":[0,1]`), 1)
	_, err := safetensors.NewReader(bytes.NewReader(raised), int64(len(raised)), safetensors.Limits{Rank: 100})
	require.NoError(t, err)

	for _, size := range []int64{-1, math.MinInt64, 0, 7} {
		_, err := safetensors.NewReader(bytes.NewReader(nil), size, safetensors.Limits{})
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	}
	_, err = safetensors.NewReader(bytes.NewReader(file), math.MaxInt64, safetensors.Limits{})
	require.ErrorContains(t, err, "belong to no tensor")
}

// The checksum covers only the elements; a file without one is accepted.
func TestVerify(t *testing.T) {
	list := []safetensors.Tensor{{Name: "x", DType: safetensors.U8, Dims: []int{3}}, {Name: "y", DType: safetensors.U8, Dims: []int{1}}}
	for metadata, fails := range map[string]bool{safetensors.Checksum(0).Update([]byte{1, 2, 3, 4}).String(): false, "none": false, "00000000": true, "": true} {
		entries := map[string]string{safetensors.ChecksumKey: metadata}
		if metadata == "none" {
			entries = nil
		}
		var out bytes.Buffer
		w, err := safetensors.NewWriter(&out, list, entries)
		require.NoError(t, err)
		_, err = w.Write("x", []byte{1, 2, 3})
		require.NoError(t, err)
		_, err = w.Write("y", []byte{4})
		require.NoError(t, err)
		r, err := safetensors.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()), safetensors.Limits{})
		require.NoError(t, err)
		require.Equal(t, fails, errors.Is(r.Verify(), safetensors.ErrChecksum), "%q", metadata)
	}
}

// Written files are read back with equal names, dtypes, dims, order, bytes and metadata.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := tensors().Draw(t, "tensors")
		metadata := rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "metadata")
		file := write(t, given, metadata)
		got, gotMetadata, err := read(file)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(given, got, same...))
		require.Equal(t, metadata, gotMetadata)
		require.Zero(t, int(file[0])%8, "the elements start at a multiple of 8")
		require.Equal(t, file, write(t, got, gotMetadata), "the same again gives the same bytes")
	})
}
