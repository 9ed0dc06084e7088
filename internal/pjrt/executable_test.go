package pjrt

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

func TestExecutable(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stepProgram, CompileOptions{Debug: map[string]any{"xla_cpu_enable_fast_math": false}})
	serialized, err := e.Serialize()
	require.NoError(t, err)
	loaded, err := c.Load(serialized)
	require.NoError(t, err)
	for name, e := range map[string]*Executable{"compiled": e, "loaded": loaded} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, "step", e.Name())
			assert.Equal(t, c.Devices(), e.Devices())
			assert.Empty(t, cmp.Diff([]Shape{{Float32, []int{4}}, {Int32, nil}, {Float32, nil}}, e.Outputs()))
			parameters, err := e.Parameters()
			require.NoError(t, err)
			assert.Empty(t, cmp.Diff([]Shape{{Float32, []int{4}}, {Int32, nil}, {Float32, nil}, {Float32, []int{4}}}, parameters))
			donated, err := e.Donated()
			require.NoError(t, err)
			assert.Equal(t, map[int]int{0: 0, 1: 1}, donated)
			costs, err := e.CostAnalysis()
			if c.Plugin().Version().Minor < 106 { // newer plugins count nothing: package cost does
				require.NoError(t, err)
				assert.Positive(t, costs["flops"])
			} else {
				require.ErrorIs(t, err, ErrUnimplemented)
			}
			memory, err := e.Memory()
			require.NoError(t, err)
			assert.EqualValues(t, 20, memory.Aliased)
			text, err := e.Fingerprint()
			require.NoError(t, err)
			assert.NotEmpty(t, text)
			program, format, err := e.OptimizedProgram()
			require.NoError(t, err)
			assert.Equal(t, "hlo_with_config", format)
			assert.Contains(t, string(program), "step")

			call, err := e.NewCall(stepOptions())
			require.NoError(t, err)
			d := c.Devices()[0]
			sum := put(t, d, Float32, []float32{1, 1, 1, 1}, 4)
			require.NoError(t, firstError(call.Set(0, 0, sum), call.Set(0, 1, put(t, d, Int32, []int32{0})), call.Set(0, 2, put(t, d, Float32, []float32{3}))))
			out, err := call.Run(Bytes([]float32{1, 2, 3, 4}))
			require.NoError(t, err)
			assert.Equal(t, []float32{4, 7, 10, 13}, fetch[float32](t, sum, 4))
			assert.Equal(t, []float32{34}, fetch[float32](t, out[0][0], 1))
		})
	}
}

func TestCompileErrors(t *testing.T) {
	c := openCPU(t, 1)
	rows := []struct {
		name, program string
		options       CompileOptions
		text          string
	}{
		{"syntax", "module { nonsense }", CompileOptions{}, "pjrt: compile: PJRT_Client_Compile: UNKNOWN: "},
		{"empty", "", CompileOptions{}, "the program is empty"},
		{"types", strings.Replace(tinyProgram, "%x, %one : tensor<f32>", "%x, %one : tensor<i32>", 1), CompileOptions{}, "PJRT_Client_Compile"},
		{"debug option", tinyProgram, CompileOptions{Debug: map[string]any{"no_such_option": true}}, "no_such_option"},
		{"type of a debug option", tinyProgram, CompileOptions{Debug: map[string]any{"x": []int{1}}}, "type []int"},
		{"devices", tinyProgram, CompileOptions{Devices: []int{0, 1}}, "got 2 devices for 1 replicas of 1 partitions"},
		{"no such device", tinyProgram, CompileOptions{Devices: []int{7}}, "7"},
		{"negative", tinyProgram, CompileOptions{Replicas: -1}, "-1 replicas"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := c.Compile([]byte(row.program), row.options)
			require.Error(t, err)
			t.Log(err)
			assert.Contains(t, err.Error(), row.text)
			assert.True(t, strings.HasPrefix(err.Error(), "pjrt: compile: "))
		})
	}
	for name, data := range map[string][]byte{"no executable": []byte("nonsense"), "nothing": nil} {
		_, err := c.Load(data)
		require.Error(t, err, name)
		assert.Contains(t, err.Error(), "PJRT_Executable_DeserializeAndLoad")
	}
}

func TestExecuteRefusals(t *testing.T) {
	c := openCPU(t, 2)
	d := c.Devices()
	e := compile(t, c, tinyProgram, CompileOptions{})
	good := put(t, d[0], Float32, []float32{1})
	rows := []struct {
		name    string
		args    [][]*Buffer
		options ExecuteOptions
		text    string
	}{
		{"no devices", nil, ExecuteOptions{}, "expected arguments for 1 devices, got 0"},
		{"two devices", [][]*Buffer{{good}, {good}}, ExecuteOptions{}, "expected arguments for 1 devices, got 2"},
		{"no arguments", [][]*Buffer{{}}, ExecuteOptions{}, "expected 1 arguments, got 0"},
		{"two arguments", [][]*Buffer{{good, good}}, ExecuteOptions{}, "expected 1 arguments, got 2"},
		{"shape", [][]*Buffer{{put(t, d[0], Float32, []float32{1}, 1)}}, ExecuteOptions{}, "argument 0: invalid argument: expected shape f32, got 1xf32"},
		{"type", [][]*Buffer{{put(t, d[0], Int32, []int32{1})}}, ExecuteOptions{}, "expected shape f32, got i32"},
		{"device", [][]*Buffer{{put(t, d[1], Float32, []float32{1})}}, ExecuteOptions{}, "expected a buffer on"},
		{"nothing", [][]*Buffer{{nil}}, ExecuteOptions{}, "there is no buffer"},
		{"keep", [][]*Buffer{{good}}, ExecuteOptions{Keep: []int{1}}, "argument 1 is to be kept, there are 1"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := e.Execute(row.args, row.options)
			require.ErrorIs(t, err, ErrInvalidArgument)
			assert.Contains(t, err.Error(), row.text)
		})
	}
}

// An argument may be passed twice, and a donated argument may be kept.
func TestExecuteDonation(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stateProgram(2, 4), CompileOptions{})
	for _, keep := range []bool{false, true} {
		x, y := put(t, c.Devices()[0], Float32, make([]float32, 4), 4), put(t, c.Devices()[0], Float32, make([]float32, 4), 4)
		options := ExecuteOptions{}
		if keep {
			options.Keep = []int{0, 1}
			y = x
		}
		run, err := e.Execute([][]*Buffer{{x, y}}, options)
		require.NoError(t, err)
		require.NoError(t, run.Await())
		gone, err := x.IsDeleted()
		require.NoError(t, err)
		assert.Equal(t, !keep, gone)
		assert.Equal(t, []float32{1, 1, 1, 1}, fetch[float32](t, run.Outputs[0][1], 4))
		require.NoError(t, run.Close())
	}
}

// An all-reduce on two devices, by Execute and by a Call in place, and a portable program on each device.
func TestTwoDevices(t *testing.T) {
	c := openCPU(t, 2)
	e := compile(t, c, `module @sum attributes {mhlo.num_replicas = 2 : i32} {
func.func @main(%x: tensor<2xf32> {tf.aliasing_output = 0 : i32}) -> tensor<2xf32> {
  %y = "stablehlo.all_reduce"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}}`, CompileOptions{Replicas: 2, Devices: []int{0, 1}})
	assert.Equal(t, c.Devices(), e.Devices())
	var buffers []*Buffer
	for i, d := range c.Devices() {
		buffers = append(buffers, put(t, d, Float32, []float32{1, float32(i)}, 2))
	}
	x, err := e.Execute([][]*Buffer{{buffers[0]}, {buffers[1]}}, ExecuteOptions{Keep: []int{0}, LaunchID: 1})
	require.NoError(t, err)
	require.Len(t, x.Done, 2)
	require.NoError(t, x.Await())
	for d, out := range x.Outputs {
		assert.Equal(t, []float32{2, 1}, fetch[float32](t, out[0], 2))
		assert.Same(t, c.Devices()[d], out[0].Device())
	}
	require.NoError(t, x.Close())
	call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}})
	require.NoError(t, err)
	for d, b := range buffers {
		require.NoError(t, call.Set(d, 0, b))
	}
	for range 3 {
		_, err := call.Run()
		require.NoError(t, err)
	}
	for _, b := range buffers {
		assert.Equal(t, []float32{8, 4}, fetch[float32](t, b, 2))
	}

	portable := compile(t, c, tinyProgram, CompileOptions{Portable: true})
	for _, d := range c.Devices() {
		x, err := portable.Execute([][]*Buffer{{put(t, d, Float32, []float32{41})}}, ExecuteOptions{Device: d})
		require.NoError(t, err)
		assert.Same(t, d, x.Outputs[0][0].Device())
		assert.Equal(t, []float32{42}, fetch[float32](t, x.Outputs[0][0], 1))
		require.NoError(t, x.Close())
	}
}

func TestCompileOptionsBytes(t *testing.T) {
	bytes, err := CompileOptions{Replicas: 2, Partitions: 3, Devices: []int{0, 1, 2, 3, 4, 5}, SPMD: true, Shardy: true, Debug: map[string]any{"a": 7}}.marshal()
	require.NoError(t, err)
	fields := map[protowire.Number][]byte{}
	read := func(number protowire.Number, value uint64, data []byte) error {
		if data == nil {
			data = protowire.AppendVarint(nil, value)
		}
		fields[number] = data
		return nil
	}
	require.NoError(t, eachField(bytes, read))
	assert.Equal(t, []byte("\x0a\x01a\x12\x02\x18\x07"), fields[7])
	build := fields[3]
	clear(fields)
	require.NoError(t, eachField(build, read))
	assert.Equal(t, []byte{2}, fields[4])
	assert.Equal(t, []byte{3}, fields[5])
	assert.Equal(t, []byte{1}, fields[6])
	assert.Equal(t, []byte{1}, fields[19])
	// Three partitions, each on the devices of its two replicas.
	assert.Equal(t, []byte("\x08\x02\x10\x03\x1a\x04\x0a\x02\x00\x03\x1a\x04\x0a\x02\x01\x04\x1a\x04\x0a\x02\x02\x05"), fields[9])
	for range 10 {
		again, err := CompileOptions{Debug: map[string]any{"a": 1, "b": true, "c": "x", "d": 1.5}}.marshal()
		require.NoError(t, err)
		first, err := CompileOptions{Debug: map[string]any{"d": 1.5, "c": "x", "b": true, "a": 1}}.marshal()
		require.NoError(t, err)
		assert.Equal(t, first, again)
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add([]byte("\x22\x07\x0a\x05\x10\x0b\x1a\x01\x04"))
	f.Add([]byte("\x42\x07\x0a\x05\x0a\x01\x00\x10\x00"))
	f.Fuzz(func(_ *testing.T, module []byte) { _, _ = parseModule(module) })
}
