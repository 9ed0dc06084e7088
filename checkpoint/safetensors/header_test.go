package safetensors_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// Other writers choose other orders, spaces and escapes; the format leaves them that.
func TestHeadersOfOthers(t *testing.T) {
	u8 := func(name string, data ...byte) content {
		return content{safetensors.Tensor{Name: name, DType: safetensors.U8, Dims: []int{len(data)}}, data}
	}
	for name, c := range map[string]struct {
		file     []byte
		tensors  []content
		metadata map[string]string
	}{
		"no padding": {framed(one(u8Fields), 1), []content{u8("a", 1)}, nil},
		"order of the bytes is not that of the header": {
			framed(`{"c":{"dtype":"U8","shape":[2],"data_offsets":[3,5]},"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`, 1, 2, 3, 4, 5),
			[]content{u8("b", 1, 2), u8("a", 3), u8("c", 4, 5)}, nil,
		},
		"empty ones between": {
			framed(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"z":{"dtype":"U8","shape":[0],"data_offsets":[1,1]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 7),
			[]content{u8("a"), u8("b", 7), u8("z")}, nil,
		},
		"fields in another order": {framed(one(`"data_offsets":[0,1],"shape":[1],"dtype":"U8"`), 1), []content{u8("a", 1)}, nil},
		"metadata behind": {framed(`{"a":{`+u8Fields+`},"__metadata__":{"k":"v"}}`, 1), []content{u8("a", 1)},
			map[string]string{"k": "v"}},
		"white space": {framed("{\n\t\"a\" : {\r\n\"dtype\":\t\"U8\" , \"shape\" : [ 1 ] , \"data_offsets\" : [ 0 , 1 ] } }\n ", 1),
			[]content{u8("a", 1)}, nil},
		"escapes": {framed(`{"\u0061\u00E9\ud83D\uDE00\/\b\f\n\r\t\"\\":{`+u8Fields+`}}`, 1), []content{u8("aé😀/\b\f\n\r\t\"\\", 1)}, nil},
		"escaped words": {framed(one(`"d\u0074ype":"\u00558","shape":[1],"data_offsets":[0,1]`), 1),
			[]content{u8("a", 1)}, nil},
		"names of fields":   {framed(`{"dtype":{`+u8Fields+`}}`, 1), []content{u8("dtype", 1)}, nil},
		"name in two forms": {framed(`{"\u00e9":{`+u8Fields+`},"e\u0301":{"dtype":"U8","shape":[0],"data_offsets":[1,1]}}`, 1), []content{u8("é", 1), u8("e\u0301")}, nil},
		"largest empty dims": {framed(one(`"dtype":"U8","shape":[0,1152921504606846975],"data_offsets":[0,0]`)),
			[]content{{safetensors.Tensor{Name: "a", DType: safetensors.U8, Dims: []int{0, 1<<60 - 1}}, []byte{}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, metadata, err := read(c.file)
			require.NoError(t, err)
			require.Empty(t, cmp.Diff(c.tensors, got, same...))
			require.Equal(t, c.metadata, metadata)
		})
	}
}

// BenchmarkHeader opens a file of 10,000 tensors, as a large language model has at most.
func BenchmarkHeader(b *testing.B) {
	var tensors []content
	for i := range 10_000 {
		name := "model.layers." + string(rune('a'+i%26)) + ".weight" + time.Duration(i).String()
		tensors = append(tensors, content{safetensors.Tensor{Name: name, DType: safetensors.BF16, Dims: []int{1, 1}}, []byte{0, 0}})
	}
	file := write(b, tensors, nil)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := open(file)
		require.NoError(b, err)
	}
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
