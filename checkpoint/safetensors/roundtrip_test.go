package safetensors_test

import (
	"bytes"
	"encoding/json"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

var same = []cmp.Option{cmp.AllowUnexported(content{}), cmpopts.EquateEmpty()}

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

// All ways to read a tensor give the same bytes, and reader and writer the same sums.
func TestWaysToReadAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := tensors().Draw(t, "tensors")
		var out bytes.Buffer
		var list []safetensors.Tensor
		for _, c := range given {
			list = append(list, c.Tensor)
		}
		w, err := safetensors.NewWriter(&out, list, nil)
		require.NoError(t, err)
		sums := map[string]safetensors.Checksum{}
		for _, c := range given {
			sums[c.Name], err = w.Write(c.Name, c.data)
			require.NoError(t, err)
		}
		require.NoError(t, w.Close())

		r, err := open(out.Bytes())
		require.NoError(t, err)
		require.Equal(t, w.HeaderChecksum(), r.HeaderChecksum())
		require.Equal(t, len(given), r.Len())
		for _, c := range given {
			tensor, found := r.Tensor(c.Name)
			require.True(t, found)
			require.Empty(t, cmp.Diff(c.Tensor, tensor, cmpopts.EquateEmpty()))
			want := safetensors.Checksum(crc32.Checksum(c.data, crc32.MakeTable(crc32.Castagnoli)))
			require.Equal(t, want, sums[c.Name])

			data, sum, err := r.Read(c.Name)
			require.NoError(t, err)
			require.Equal(t, c.data, data)
			require.Equal(t, want, sum)

			into := make([]byte, len(c.data))
			sum, err = r.ReadInto(c.Name, into)
			require.NoError(t, err)
			require.Equal(t, c.data, into)
			require.Equal(t, want, sum)

			var copied bytes.Buffer
			sum, err = r.Copy(&copied, c.Name)
			require.NoError(t, err)
			require.Equal(t, c.data, append([]byte{}, copied.Bytes()...))
			require.Equal(t, want, sum)

			if len(c.Dims) == 0 || c.DType.Bits() < 8 {
				continue
			}
			from := rapid.IntRange(0, c.Dims[0]).Draw(t, "from")
			to := rapid.IntRange(from, c.Dims[0]).Draw(t, "to")
			rows, err := r.ReadRows(c.Name, from, to)
			require.NoError(t, err)
			row := len(c.data) / max(c.Dims[0], 1)
			require.Equal(t, c.data[from*row:to*row], rows)
		}
	})
}

// A tensor that is larger than the pieces in which it is written and read.
func TestLargeTensor(t *testing.T) {
	data := make([]byte, 3<<20+8)
	for i := range data {
		data[i] = byte(i * i >> 8)
	}
	tensor := safetensors.Tensor{Name: "w", DType: safetensors.F64, Dims: []int{len(data) / 8}}
	file := write(t, []content{{tensor, data}}, nil)
	got, _, err := read(file)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.True(t, bytes.Equal(data, got[0].data))

	var out bytes.Buffer
	w, err := safetensors.NewWriter(&out, []safetensors.Tensor{tensor}, nil)
	require.NoError(t, err)
	sum, err := w.WriteFunc("w", func(to io.Writer) error {
		for piece := range slices.Chunk(data, 333_333) {
			if _, err := to.Write(piece); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	require.True(t, bytes.Equal(file, out.Bytes()))

	r, err := open(file)
	require.NoError(t, err)
	var copied bytes.Buffer
	sumRead, err := r.Copy(&copied, "w")
	require.NoError(t, err)
	require.Equal(t, sum, sumRead)
	require.True(t, bytes.Equal(data, copied.Bytes()))
}

// Upstream's own bytes for these, taken from its documentation of the format and its tests.
func TestHeaderIsThatOfUpstream(t *testing.T) {
	for name, c := range map[string]struct {
		tensors  []content
		metadata map[string]string
		header   string
	}{
		"nothing":  {nil, nil, `{}`},
		"metadata": {nil, map[string]string{"framework": "pt"}, `{"__metadata__":{"framework":"pt"}}`},
		"one": {[]content{{safetensors.Tensor{Name: "attn0", DType: safetensors.F32, Dims: []int{1, 1, 2, 3}}, make([]byte, 24)}}, nil,
			`{"attn0":{"dtype":"F32","shape":[1,1,2,3],"data_offsets":[0,24]}}`},
		"escapes": {[]content{{safetensors.Tensor{Name: "\x00\b\t\n\f\r\"\\/é\x7f", DType: safetensors.U8}, []byte{1}}}, map[string]string{},
			`{"__metadata__":{},"\u0000\b\t\n\f\r\"\\/é` + "\x7f" + `":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, c.tensors, c.metadata)
			header := string(file[8 : 8+int(file[0])])
			require.Equal(t, c.header, strings.TrimRight(header, " "))
			require.Less(t, len(header)-len(c.header), 8)
			require.Zero(t, file[0]%8)
		})
	}
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
