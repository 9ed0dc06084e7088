package pjrt

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func BenchmarkRunTiny(b *testing.B) {
	c := openCPU(b, 1)
	call, err := compile(b, c, tinyProgram, CompileOptions{}).NewCall(CallOptions{})
	require.NoError(b, err)
	require.NoError(b, call.Set(0, 0, put(b, c.Devices()[0], Float32, []float32{1})))
	b.Run("waiting", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out, err := call.Run()
			if err == nil {
				err = out[0][0].Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("event", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x, err := call.Start()
			if err == nil {
				err = firstError(x.Await(), x.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkRunHost passes a batch to a run, as a host input and by a buffer made before.
func BenchmarkRunHost(b *testing.B) {
	const size = 1 << 18
	c := openCPU(b, 1)
	program := fmt.Sprintf(`module @host {
func.func @main(%%x: tensor<%[1]dxf32>) -> tensor<1xf32> {
  %%y = stablehlo.slice %%x [0:1] : (tensor<%[1]dxf32>) -> tensor<1xf32>
  return %%y : tensor<1xf32>
}}`, size)
	e := compile(b, c, program, CompileOptions{})
	shape := Shape{Float32, []int{size}}
	data := Bytes(make([]float32, size))
	b.Run("in the call", func(b *testing.B) {
		call, err := e.NewCall(CallOptions{Host: []HostInput{{0, shape}}})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			out, err := call.Run(data)
			if err == nil {
				err = out[0][0].Close()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by Put", func(b *testing.B) {
		call, err := e.NewCall(CallOptions{})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			x, err := c.Devices()[0].Put(Array{Shape: shape, Data: data})
			if err == nil {
				err = call.Set(0, 0, x)
			}
			if err != nil {
				b.Fatal(err)
			}
			out, err := call.Run()
			if err == nil {
				err = firstError(out[0][0].Close(), x.Close())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestStrides(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	b, err := d.Put(Array{Shape: Shape{Int32, []int{3, 2}}, Data: Bytes([]int32{1, 2, 3, 4, 5, 6}), Strides: []int{4, 12}})
	require.NoError(t, err)
	assert.Equal(t, []int32{1, 4, 2, 5, 3, 6}, fetch[int32](t, b, 6), "the transpose")
}

func TestArraysThatAreRefused(t *testing.T) {
	d := openCPU(t, 1).Devices()[0]
	rows := []struct {
		name  string
		array Array
		text  string
	}{
		{"too short", Array{Shape: Shape{Float32, []int{2, 3}}, Data: make([]byte, 23)}, "2x3xf32: invalid argument: expected 24 bytes, got 23"},
		{"too long", Array{Shape: Shape{Float32, nil}, Data: make([]byte, 5)}, "expected 4 bytes, got 5"},
		{"negative", Array{Shape: Shape{Float32, []int{-1}}}, "negative dimension"},
		{"overflow", Array{Shape: Shape{Float32, []int{1 << 62, 2}}}, "more bytes"},
		{"no type", Array{}, "type with elements"},
		{"unknown type", Array{Shape: Shape{DType(99), nil}}, "dtype 99"},
		{"strides out of it", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{2}}, "lead out"},
		{"strides overflow", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{math.MaxInt}}, "lead out"},
		{"negative stride", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{-1}}, "negative"},
		{"strides of another rank", Array{Shape: Shape{Int8, []int{3}}, Data: make([]byte, 4), Strides: []int{1, 1}}, "expected 1 strides"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			for _, f := range []func() error{
				func() error { _, err := d.Put(row.array); return err },
				func() error { _, err := d.Share(row.array, func() { t.Error("released") }); return err },
			} {
				err := f()
				require.Error(t, err)
				assert.Contains(t, err.Error(), row.text)
			}
		})
	}
	b := put(t, d, Float32, []float32{1, 2}, 2)
	require.ErrorIs(t, b.ToHost(make([]byte, 7)), ErrInvalidArgument)
	_, err := b.StartToHost(make([]byte, 9))
	require.ErrorIs(t, err, ErrInvalidArgument)
	_, err = b.CopyTo(nil)
	require.ErrorIs(t, err, ErrInvalidArgument)
}

// The state's memory has the same address before and after.
func TestInPlaceKeepsOneCopy(t *testing.T) {
	c := openCPU(t, 1)
	const size = 1 << 16
	call, state := stateCall(t, c, 1, size)
	place := func() *byte {
		view, err := state[0].View()
		require.NoError(t, err)
		defer view.Close()
		return &view.Data[0]
	}
	before := place()
	for range 5 {
		_, err := call.Run()
		require.NoError(t, err)
		require.Same(t, before, place())
	}
	assert.EqualValues(t, 1, Live().Buffers)
	require.NoError(t, call.KeepArguments(true))
	_, err := call.Run()
	require.NoError(t, err)
	assert.NotSame(t, before, place(), "the kept argument was copied")
	assert.Equal(t, float32(6), fetch[float32](t, state[0], size)[0])
	memory, err := call.run.of.Memory()
	require.NoError(t, err)
	assert.EqualValues(t, size*4, memory.Aliased)
	assert.EqualValues(t, size*4, memory.Arguments)
	donated, err := call.run.of.Donated()
	require.NoError(t, err)
	assert.Equal(t, map[int]int{0: 0}, donated)
}

func TestCallOptionsThatAreRefused(t *testing.T) {
	c := openCPU(t, 1)
	e := compile(t, c, stepProgram, CompileOptions{})
	four := Shape{Float32, []int{4}}
	rows := []struct {
		name    string
		options CallOptions
		text    string
	}{
		{"no such output", CallOptions{InPlace: map[int]int{3: 0}}, "there are 3 outputs and 4 arguments"},
		{"no such argument", CallOptions{InPlace: map[int]int{0: 4}}, "there are 3 outputs and 4 arguments"},
		{"other shape", CallOptions{InPlace: map[int]int{0: 1}}, "output 0 of shape 4xf32 in place of argument 1 of shape i32"},
		{"replaced twice", CallOptions{InPlace: map[int]int{2: 2, 0: 0}, Host: []HostInput{{2, Shape{Float32, nil}}}}, "replaced twice"},
		{"host input of another shape", CallOptions{Host: []HostInput{{3, Shape{Float64, []int{4}}}}}, "4xf64"},
		{"two host inputs", CallOptions{Host: []HostInput{{3, four}, {3, four}}}, "two host inputs"},
		{"no such output to be read", CallOptions{Read: []int{3}}, "output 3 is to be read"},
		{"a replaced output to be read", CallOptions{InPlace: map[int]int{0: 0}, Read: []int{0}}, "output 0 is to be read"},
		{"an output to be read twice", CallOptions{Read: []int{2, 2}}, "output 2 is to be read"},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := e.NewCall(row.options)
			require.ErrorIs(t, err, ErrInvalidArgument)
			assert.Contains(t, err.Error(), row.text)
		})
	}
	call, err := e.NewCall(stepOptions())
	require.NoError(t, err)
	d := c.Devices()[0]
	x := put(t, d, Float32, make([]float32, 4), 4)
	for _, row := range []struct {
		name string
		err  error
		text string
	}{
		{"host input", call.Set(0, 3, x), "argument 3 is a host input"},
		{"out of range", call.Set(0, 4, x), "there are 4 arguments"},
		{"device", call.Set(1, 0, x), "1 devices"},
		{"nothing", call.Set(0, 0, nil), "there is no buffer"},
		{"wrong shape", call.Set(0, 0, put(t, d, Float32, make([]float32, 3), 3)), "argument 0: invalid argument: expected shape 4xf32, got 3xf32"},
		{"wrong type", call.Set(0, 0, put(t, d, Int32, make([]int32, 4), 4)), "expected shape 4xf32, got 4xi32"},
		{"no host input", second(call.Run()), "expected 1 host inputs, got 0"},
		{"short host input", second(call.Run(make([]byte, 12))), "expected 16 bytes, got 12"},
		{"memory for no output", second(call.RunInto([][]byte{{}, {}}, make([]byte, 16))), "expected memory for 1 outputs to be read, got 2"},
		{"short memory", second(call.RunInto([][]byte{make([]byte, 3)}, make([]byte, 16))), "expected room for 4 bytes, got 3"},
		{"not set", second(call.Run(make([]byte, 16))), "argument 0 on device 0 is not set"},
	} {
		require.ErrorIs(t, row.err, ErrInvalidArgument, row.name)
		assert.Contains(t, row.err.Error(), row.text, row.name)
	}
}

// A program that does not fit in memory fails, and its state is intact.
func TestG04_F17_OutOfMemory(t *testing.T) {
	c := openCPU(t, 1)
	const huge = 1 << 42 // elements: 16 TiB
	e := compile(t, c, fmt.Sprintf(`module @huge {
func.func @main(%%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %%s: tensor<f32>) -> (tensor<4xf32>, tensor<%[1]dxf32>) {
  %%y = stablehlo.add %%x, %%x : tensor<4xf32>
  %%w = stablehlo.broadcast_in_dim %%s, dims = [] : (tensor<f32>) -> tensor<%[1]dxf32>
  return %%y, %%w : tensor<4xf32>, tensor<%[1]dxf32>
}}`, huge), CompileOptions{})
	call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}})
	require.NoError(t, err)
	values := []float32{1, 2, 3, float32(math.Inf(1))}
	x := put(t, c.Devices()[0], Float32, values, 4)
	require.NoError(t, firstError(call.Set(0, 0, x), call.Set(0, 1, put(t, c.Devices()[0], Float32, []float32{1}))))
	before := Live()
	intact, told := 0, 0
	for i := range 20 {
		require.NoError(t, call.KeepArguments(i%2 == 0))
		_, err := call.Run()
		require.ErrorIs(t, err, ErrOutOfMemory)
		require.Equal(t, before, Live())
		if errors.Is(err, ErrArgumentsLost) {
			require.NotZero(t, i%2, "arguments that were to be kept are lost: %v", err)
			require.Error(t, x.ToHost(make([]byte, 16)))
			require.NoError(t, x.Close()) // or the garbage collector closes it during a later run
			told++
			x = put(t, c.Devices()[0], Float32, values, 4)
			require.NoError(t, call.Set(0, 0, x))
			before = Live()
			continue
		}
		intact++
		require.Equal(t, values, fetch[float32](t, x, 4))
	}
	t.Logf("20 failed runs: state intact %d times, reported lost %d times; always intact when kept", intact, told)
}

func TestF18_fortyThousandRuns(t *testing.T) {
	const runs = 10_000
	c := openCPU(t, 1)
	call, state := stateCall(t, c, 3, 4)
	start := Live()
	made := 0
	run := func() {
		for range runs {
			_, err := call.Run()
			require.NoError(t, err)
		}
		made += runs
	}
	run()
	var grown []int // growth by part: a leak grows in all parts, a compilation only in one
	for len(grown) < 3 || slices.Min(grown) > 1<<20 && len(grown) < 8 {
		before := resident(t)
		run()
		grown = append(grown, resident(t)-before)
	}
	for range runs / 10 {
		x, err := call.Start()
		require.NoError(t, err)
		require.NoError(t, firstError(x.Await(), x.Close()))
		b := put(t, c.Devices()[0], Float32, []float32{1})
		require.Equal(t, []float32{1}, fetch[float32](t, b, 1))
		require.NoError(t, b.Close())
	}
	assert.Equal(t, start, Live(), "after the runs")
	runtime.KeepAlive(call)
	if !testing.Short() { // the race detector's memory hides the process's
		assert.Less(t, slices.Min(grown), 1<<20, "an event that is left in each run, which nobody counts, takes 360 bytes: %v", grown)
	}
	sum := float32(2 + made + runs/10)
	assert.Equal(t, []float32{sum, sum, sum, sum}, fetch[float32](t, state[2], 4))
	require.NoError(t, c.Close())
	end := Live()
	assert.Equal(t, Counts{Callbacks: end.Callbacks, Collected: start.Collected}, end)
	t.Logf("F18: %d runs: resident of each part after the first %+v bytes; live before %+v, after Close %+v", made+runs/10, grown, start, end)
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

// A failed run reports exactly the lost arguments.
func TestF17_LostArguments(t *testing.T) {
	library := buildFake(t)
	rows := []struct {
		name string
		late string
		keep bool
		far  bool // the device has its own memory: each run sends the host input
		fail string
		lost []Argument
		ran  bool
		want float32 // first element of argument 0 afterwards, unless lost
	}{
		{name: "not started", fail: "LoadedExecutable_Execute", want: 1},
		{name: "not started, host input", far: true, fail: "Client_BufferFromHostBuffer", want: 1},
		{name: "after donation", late: "1", fail: "LoadedExecutable_Execute", lost: []Argument{{0, 0}}},
		{name: "after donation, kept", late: "1", keep: true, fail: "LoadedExecutable_Execute", want: 1},
		{name: "while it ran", fail: "Event_Await", lost: []Argument{{0, 0}}},
		{name: "while it ran, kept", keep: true, fail: "Event_Await", want: 1},
		{name: "after it", fail: "Event_Destroy", ran: true, want: 2},
		{name: "the old value", fail: "Buffer_Destroy", ran: true, want: 2},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			p, err := Load(freshFake(t, library))
			require.NoError(t, err)
			c, err := p.NewClient(nil, nil)
			require.NoError(t, err)
			e, err := c.Compile([]byte("fake 3 2 1 1"), CompileOptions{})
			require.NoError(t, err)
			shape := Shape{Float32, []int{4}}
			if row.far {
				t.Setenv(fakeRemote, "1")
			}
			call, err := e.NewCall(CallOptions{InPlace: map[int]int{0: 0}, Host: []HostInput{{2, shape}}})
			require.NoError(t, err)
			require.NoError(t, call.KeepArguments(row.keep))
			x := put(t, c.Devices()[0], Float32, []float32{1, 2, 3, 4}, 4)
			require.NoError(t, call.Set(0, 0, x))
			require.NoError(t, call.Set(0, 1, put(t, c.Devices()[0], Float32, []float32{1, 2, 3, 4}, 4)))

			// The next call of the function fails, which is the first of the next run.
			host := Bytes([]float32{1, 2, 3, 4})
			t.Setenv("LAZO_FAKE_LATE", row.late)
			if row.late == "" {
				require.NoError(t, os.Unsetenv("LAZO_FAKE_LATE"))
			}
			_, calls, _ := fakeState(t, p)
			for k := calls + 1; ; k++ {
				before, _, _ := fakeState(t, p)
				_, made, _ := fakeState(t, p)
				t.Setenv("LAZO_FAKE_FAIL", fmt.Sprint(made+k-calls))
				out, err := call.Run(host)
				_, _, failed := fakeState(t, p)
				t.Setenv("LAZO_FAKE_FAIL", "")
				if failed != row.fail {
					require.Less(t, k-calls, int64(20), "%s was not called", row.fail)
					// Another function failed: start again with a fresh argument.
					if err == nil {
						require.NoError(t, out[0][0].Close())
					}
					fresh := put(t, c.Devices()[0], Float32, []float32{1, 2, 3, 4}, 4)
					require.NoError(t, x.Close())
					x = fresh
					require.NoError(t, call.Set(0, 0, x))
					continue
				}
				var run *RunError
				require.ErrorAs(t, err, &run)
				assert.Equal(t, row.lost, run.Lost)
				assert.Equal(t, row.ran, run.Ran)
				assert.Equal(t, len(row.lost) > 0, errors.Is(err, ErrArgumentsLost))
				assert.Contains(t, err.Error(), row.fail)
				after, _, _ := fakeState(t, p)
				assert.Equal(t, before, after, "objects")
				break
			}
			if len(row.lost) == 0 {
				assert.Equal(t, []float32{row.want, row.want + 1, row.want + 2, row.want + 3}, fetch[float32](t, x, 4))
				_, err := call.Run(host)
				require.NoError(t, err, "the next run")
			}
			require.NoError(t, c.Close())
			left, _, _ := fakeState(t, p)
			assert.Zero(t, left)
		})
	}
}
