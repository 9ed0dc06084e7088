package checkpoint_test

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/gomlx/compute/dtypes/float16"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
	gomlx "github.com/gomlx/gomlx/ml/model"
	saving "github.com/gomlx/gomlx/ml/model/checkpoint"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/checkpoint/safetensors"
)

// writeFixtures writes testdata for a format that has none yet. Existing ones never change.
var writeFixtures = flag.Bool("write-fixtures", false, "write the fixtures of F39 that are missing")

var gomlxForms = map[string]saving.BinFormat{"gzip": saving.BinGZIP, "raw": saving.BinUncompressed}

// gomlxVersions are the versions with files in testdata. This test writes those of the last.
var gomlxVersions = []string{"v0.26.0", "v0.28.8"}

// gomlxVariables are a value of each type that GoMLX's tensors have, by full name.
func gomlxVariables(t T) map[string]*tensors.Tensor {
	t.Helper()
	f16 := func(x float32) float16.Float16 { return float16.FromFloat32(x) }
	bf16 := func(x float32) bfloat16.BFloat16 { return bfloat16.FromFloat32(x) }
	all := map[string]any{
		"/bool": []bool{true, false}, "/a/int8": []int8{-128, 127}, "/a/int16": []int16{math.MinInt16, 1}, "/a/int32": []int32{math.MinInt32, 7},
		"/a/b/int64": []int64{math.MinInt64, math.MaxInt64, 1<<53 + 1}, "/a/uint8": []uint8{0, 255}, "/a/uint16": []uint16{0, 65535},
		"/a/uint32": []uint32{math.MaxUint32}, "/#rngState": []uint64{math.MaxUint64, 1, 2}, "/a/f16": []float16.Float16{f16(1.5), f16(-2)},
		"/a/bf16": []bfloat16.BFloat16{bf16(1), bf16(-3)}, "/dense/weights": [][]float32{{1, -2, float32(math.Inf(1))}, {float32(math.Copysign(0, -1)), math.MaxFloat32, 0.1}},
		"/dense/é <&>": []float64{math.NaN(), 5e-324}, "/a/complex64": []complex64{complex(1, -2)}, "/global_step": int64(1200),
	}
	made := map[string]*tensors.Tensor{}
	for name, x := range all {
		made[name] = tensors.MustFromAnyValue(x)
	}
	made["/a/zeros"] = tensors.FromShape(shapes.Make(dtypes.Float32, 30, 20))
	return made
}

// gomlxParams are values that a store can hold, and their imported form.
var gomlxParams = map[string]any{
	"int": -1, "int64": int64(1<<53 + 1), "uint64": uint64(math.MaxUint64), "float64": 0.1, "negative zero": math.Copysign(0, -1),
	"float32": float32(0.1), "bool": true, "text": "Größe <&> \u2028", "empty": "", "bytes": []byte{0, 255}, "uint8": uint8(200),
}

// saveGoMLX has GoMLX save a checkpoint of step 1200.
func saveGoMLX(t T, dir string, form saving.BinFormat) {
	t.Helper()
	store := gomlx.NewStore()
	for name, x := range gomlxParams {
		store.SetParam("/made/"+name, x)
	}
	store.SetParam("/layers", []int{3, 1 << 60})
	for name, value := range gomlxVariables(t) {
		_, err := store.CreateVariable(name, value)
		require.NoError(t, err)
	}
	handler, err := saving.Build(store).Dir(dir).WithCompression(form).Done()
	require.NoError(t, err)
	require.NoError(t, handler.Save())
}

// checkGoMLX checks that an import equals the content that saveGoMLX saved.
func checkGoMLX(t T, c *checkpoint.Checkpoint) {
	t.Helper()
	require.EqualValues(t, 1200, c.Step)
	want := gomlxVariables(t)
	require.Len(t, c.Tensors, len(want))
	bytes := int64(0)
	for name, w := range want {
		got, ok := c.Tensor(name)
		require.True(t, ok, name)
		require.Equal(t, append([]int{}, w.Shape().Dimensions...), got.Dims, name)
		require.Equal(t, strings.ToLower(w.DType().String()), goName(got.DType), name)
		require.NoError(t, w.ConstBytes(func(data []byte) { require.Equal(t, data, got.Data, name) }))
		bytes += int64(len(got.Data))
	}
	require.Equal(t, bytes, c.Bytes)
	var params checkpoint.Params
	require.NoError(t, c.Section("params", &params))
	require.Len(t, params, len(gomlxParams))
	for name, w := range gomlxParams {
		same(t, w, params["/made/"+name])
	}
	var other map[string]struct {
		Type  string
		Value json.RawMessage
	}
	require.NoError(t, c.Section("params.other", &other))
	require.Len(t, other, 1)
	require.Equal(t, "[]int", other["/layers"].Type)
	require.Equal(t, "[3,1152921504606846976]", string(other["/layers"].Value))
}

// goName is GoMLX's name of a type, in small letters.
func goName(d safetensors.DType) string {
	return map[safetensors.DType]string{safetensors.Bool: "bool", safetensors.I8: "int8", safetensors.I16: "int16", safetensors.I32: "int32",
		safetensors.I64: "int64", safetensors.U8: "uint8", safetensors.U16: "uint16", safetensors.U32: "uint32", safetensors.U64: "uint64",
		safetensors.F16: "float16", safetensors.BF16: "bfloat16", safetensors.F32: "float32", safetensors.F64: "float64", safetensors.C64: "complex64"}[d]
}

// The newest is the one with the highest number; others by their path.
func TestImportGoMLXChooses(t *testing.T) {
	dir := t.TempDir()
	store := gomlx.NewStore()
	n, err := store.CreateVariable("/n", tensors.FromValue(int64(1)))
	require.NoError(t, err)
	handler, err := saving.Build(store).Dir(dir).Keep(-1).Done()
	require.NoError(t, err)
	require.NoError(t, handler.Save())
	require.NoError(t, n.SetValue(tensors.FromValue(int64(2))))
	require.NoError(t, handler.Save())
	names, err := handler.ListCheckpoints()
	require.NoError(t, err)
	value := func(c *checkpoint.Checkpoint, err error) int64 {
		require.NoError(t, err)
		n, ok := c.Tensor("/n")
		require.True(t, ok)
		values, err := safetensors.Values[int64](n.Data)
		require.NoError(t, err)
		return values[0]
	}
	require.EqualValues(t, 2, value(checkpoint.ImportGoMLX(dir, 0)))
	old := filepath.Join(dir, names[0]+".json")
	require.EqualValues(t, 1, value(checkpoint.ImportGoMLX(old, 0)))

	// A truncated one is refused, and the error explains how to get the one before.
	require.NoError(t, os.Truncate(filepath.Join(dir, names[1]+".bin"), 30))
	_, err = checkpoint.ImportGoMLX(dir, 0)
	var damaged *checkpoint.DamagedError
	require.ErrorAs(t, err, &damaged)
	require.ErrorContains(t, err, "to import the checkpoint before it, give the path of "+names[0]+".json")
	require.EqualValues(t, 1, value(checkpoint.ImportGoMLX(old, 0)))

	_, err = checkpoint.ImportGoMLX(t.TempDir(), 0)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	_, err = checkpoint.ImportGoMLX(filepath.Join(dir, "none"), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = checkpoint.ImportGoMLX(strings.TrimSuffix(old, ".json")+".bin", 0)
	require.ErrorContains(t, err, "ends in .json")
}

// Checkpoints of this GoMLX, and the files of each version in testdata, are imported with every bit.
func TestF39_importOfGoMLX(t *testing.T) {
	for name, form := range gomlxForms {
		t.Run(name, func(t *testing.T) {
			dirs := []string{t.TempDir()}
			saveGoMLX(t, dirs[0], form)
			for _, version := range gomlxVersions {
				kept := filepath.Join("testdata", "gomlx-"+version, name)
				if _, err := os.Stat(kept); *writeFixtures && os.IsNotExist(err) {
					require.NoError(t, os.MkdirAll(kept, 0o750))
					saveGoMLX(t, kept, form)
				}
				dirs = append(dirs, kept)
			}
			for _, dir := range dirs {
				c, err := checkpoint.ImportGoMLX(dir, 0)
				require.NoError(t, err)
				checkGoMLX(t, c)

				// Saved again, it is a checkpoint like any other.
				loaded := roundTrip(t, c.Content())
				loaded.Step = c.Step
				loaded.Bytes = c.Bytes
				checkGoMLX(t, loaded)
			}
		})
	}
	t.Logf("F39: %d variables of %d types and %d parameters of GoMLX %s, gzip and raw: 0 differing bits", len(gomlxVariables(t)), len(gomlxVariables(t))-2, len(gomlxParams)+1, strings.Join(gomlxVersions, " and "))
}
