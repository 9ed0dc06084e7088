package plan

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/xla"
	"github.com/lazo-ml/lazo/xla/cost"
)

func TestMachines(t *testing.T) {
	machines, err := parseMachines(machinesText)
	require.NoError(t, err)
	var kinds []string
	for _, m := range machines {
		kinds = append(kinds, m.Kind)
		require.Contains(t, []string{"tpu", "cuda"}, m.Plugin, m.Kind)
		require.Positive(t, m.Memory, m.Kind)
		require.Positive(t, m.Bandwidth, m.Kind)
		require.Positive(t, m.Matrix["bf16"], m.Kind)
		for figure, source := range m.Sources {
			require.Regexp(t, `^(NVIDIA|Google Cloud documentation), ".+"`, source, "%s of %s", figure, m.Kind)
		}
	}
	require.Equal(t, []string{"v4", "v5e", "v5p", "v6e", "tpu7x", "a100", "h100", "h200", "b200"}, kinds)
	for _, wrong := range []string{"v9\tmemory\t1\n", "v9\tmemory\tmuch\tsomewhere\n", "v9\tspeed\t1\tsomewhere\n", "v9\tmemory\t1\ta\nv9\tmemory\t2\tb\n", "v9\tmemory\t-1\ta\n"} {
		_, err := parseMachines(wrong)
		require.Error(t, err, "%q", wrong)
	}
}

func TestParseTarget(t *testing.T) {
	for name, want := range map[string]struct {
		topology string
		hosts    int
	}{
		"v5e:4x4": {"v5e:4x4", 1}, "v5p:2x2x4": {"v5p:2x2x4", 1}, "h100:8": {"h100:1x1x8", 1}, "h100:4": {"h100:1x1x4", 1}, "h100:1": {"h100:1x1x1", 1},
		"h100:64": {"h100:1x8x8", 8}, "a100:1x2x4": {"a100:1x2x4", 2},
	} {
		target, err := ParseTarget(name)
		require.NoError(t, err, name)
		require.Equal(t, want.topology, target.Topology(), name)
		require.Equal(t, want.hosts, target.Hosts(), name)
	}
	for name, want := range map[string]string{
		"": "the kinds are v4, v5e", "h100": "the kinds are", "k80:8": "the kinds are", "h100:": `"" is not a number`, "h100:0": "not a number of devices", "h100:12": "not a whole number of hosts of 8",
		"h100:2x8": "SLICESxHOSTSxDEVICES", "v5e:16": `as "v5e:4x4"`, "v5e:2x2x2x2": "4 axes", "h100:9999999": "not a number of devices",
		"v5e:2x2x2": "two axes of at most 16", "v6e:32x8": "two axes of at most 16", "h200:8": "expected one of a100, h100",
	} {
		_, err := ParseTarget(name)
		require.ErrorContains(t, err, want, name)
	}
	for devices, want := range map[int]string{1: "v5e:1x1", 8: "v5e:2x4", 64: "v5e:8x8", 256: "v5e:16x16"} {
		target, err := ParseTarget("v5e:2x2")
		require.NoError(t, err)
		target, err = target.Sized(devices)
		require.NoError(t, err)
		require.Equal(t, want, target.Name)
	}
	target, err := ParseTarget("v5p:2x2x1")
	require.NoError(t, err)
	for devices, want := range map[int]string{4: "v5p:2x2x1", 8: "v5p:2x2x2", 64: "v5p:4x4x4"} {
		sized, err := target.Sized(devices)
		require.NoError(t, err)
		require.Equal(t, want, sized.Name)
	}
}

// libtpu's messages about programs that are too large, verbatim.
func TestUnfit(t *testing.T) {
	for text, want := range map[string]Fit{
		"RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: Ran out of memory on HBM, the total memory required for HLO temporaries (20.88G) exceeds available HBM (15.75G). HLO module: jit__lambda.": {Needs: 22419729285, Has: 16911433728, By: "the compiler"},
		"RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 512.00M of 256.00M hbm.":                                                                                                 {Needs: 512 << 20, Has: 256 << 20, By: "the compiler"},
	} {
		fit, is := unfit(fmt.Errorf("xla: compile: %w: %s", xla.ErrOutOfMemory, text))
		require.True(t, is)
		require.Equal(t, want, fit)
		require.Equal(t, want.Needs-want.Has, fit.Over())
	}
	_, is := unfit(fmt.Errorf("%w: of the host", xla.ErrOutOfMemory))
	require.False(t, is)
	_, is = unfit(errors.New("required (20.88G) exceeds available (15.75G)"))
	require.False(t, is)
}

func TestEstimate(t *testing.T) {
	at := func(name string) Target {
		target, err := ParseTarget(name)
		require.NoError(t, err)
		return target
	}
	c := &cost.Counts{Matrix: map[string]float64{"bf16": 197e9}, Bytes: 819e6, Exchanged: []cost.Exchange{{Kind: "all-reduce", Axes: "data", Group: 4, Sent: 100e6}}, Devices: 4}
	e := estimate(at("v5e:2x2"), c)
	require.Equal(t, Estimate{Compute: time.Millisecond, Memory: time.Millisecond, Links: 500 * time.Microsecond, Low: time.Millisecond, High: 2500 * time.Microsecond}, e)
	// A TPU multiplies float32 as bfloat16, which is reported.
	c.Matrix = map[string]float64{"f32": 197e9}
	e = estimate(at("v5e:2x2"), c)
	require.Equal(t, time.Millisecond, e.Compute)
	require.Equal(t, []string{"the rate of f32 products on v5e: that of bf16 is taken"}, e.Missing)
	// An unpublished rate is left out and reported.
	c.Matrix, c.Vector = map[string]float64{"c64": 1e12}, 1e9
	e = estimate(at("v4:2x2x1"), c)
	require.Zero(t, e.Compute+e.Links)
	require.Equal(t, []string{"the rate of c64 products on v4: they are not in the estimate",
		"the rate of operations other than products on v4: only their memory is counted",
		"the speed of the links of v4: the exchange is not in the estimate"}, e.Missing)
	// Over several hosts, the slower of links and a host's network cards decides.
	c = &cost.Counts{Matrix: map[string]float64{}, Exchanged: []cost.Exchange{{Kind: "all-reduce", Axes: "data", Group: 64, Sent: 450e6}}}
	require.Equal(t, time.Millisecond, estimate(at("h100:8"), c).Links)
	require.Equal(t, 1125*time.Microsecond, estimate(at("h100:64"), c).Links)
}

const stablehlo = `module @step {
  func.func public @main(%p0: tensor<32x8xf32>, %p1: tensor<8x4xf32> {tf.aliasing_output = 0 : i32}, %p2: tensor<f32>) -> (tensor<8x4xf32>, tensor<f32>) {
    %0 = "stablehlo.dot_general"(%p0, %p1) {
      dot_dimension_numbers = #stablehlo.dot<
  lhs_contracting_dimensions = [1]
>
    } : (tensor<32x8xf32>, tensor<8x4xf32>) -> tensor<32x4xf32>
    %1 = stablehlo.constant dense<0.0> : tensor<f32>
    return %p1, %1 : tensor<8x4xf32>, tensor<f32>
  }
}
`

func TestStep_divided(t *testing.T) {
	s := Step{Name: "step", Text: stablehlo, Batch: []int{0}}
	text, mesh, batch, division, err := s.divided(4)
	require.NoError(t, err)
	require.Equal(t, []cost.Axis{{Name: "data", Size: 4}}, mesh)
	require.Equal(t, 32, batch)
	require.Equal(t, "data parallel: 8 examples on each of 4 devices, all of the state on each", division)
	golden.Equal(t, "testdata/divided.mlir", text)
	require.Equal(t, strings.Count(stablehlo, "\n"), strings.Count(text, "\n")) // line numbers stay valid

	// One device changes nothing, nor is a sharded program changed.
	same, _, _, division, err := s.divided(1)
	require.NoError(t, err)
	require.Equal(t, stablehlo, same)
	require.Equal(t, "one device", division)
	again, mesh, _, division, err := Step{Text: text, Batch: []int{0}}.divided(4)
	require.NoError(t, err)
	require.Equal(t, text, again)
	require.Equal(t, []cost.Axis{{Name: "data", Size: 4}}, mesh)
	require.Equal(t, `as the program says: "data"=4`, division)

	_, _, _, _, err = s.divided(5)
	require.ErrorIs(t, err, xla.ErrUneven)
	_, _, _, _, err = Step{Text: text}.divided(8)
	require.ErrorContains(t, err, "divided over 4 devices")
	_, _, _, _, err = Step{Text: stablehlo}.divided(2)
	require.ErrorContains(t, err, "it is not known which inputs are the batch")
	_, _, _, _, err = Step{Text: stablehlo, Batch: []int{7}}.divided(2)
	require.ErrorContains(t, err, "input 7 is the batch's: the program has 3")
	_, _, _, _, err = Step{Text: stablehlo, Batch: []int{2}}.divided(2)
	require.ErrorContains(t, err, "no axis of examples")
	_, _, _, _, err = Step{Text: "nothing"}.divided(1)
	require.ErrorContains(t, err, "no function @main")
}

func TestReport_tables(t *testing.T) {
	target, err := ParseTarget("h100:8")
	require.NoError(t, err)
	hlo, err := os.ReadFile("../cost/testdata/gpu-data-parallel.hlo")
	require.NoError(t, err)
	counts, err := cost.Count(string(hlo), []cost.Axis{{Name: "data", Size: 8}})
	require.NoError(t, err)
	r := &Report{Program: "train step", Target: "h100:8", Devices: 8, Division: "data parallel: 4 examples on each of 8 devices, all of the state on each", Batch: 32,
		Memory: xla.Memory{Arguments: 58776, Outputs: 57856, Aliased: 57732, Temporary: 39960}, Counts: counts, Compiled: 2957 * time.Millisecond,
		Fit: Fit{Fits: true, Needs: 98860, Has: 80e9, By: "the sum"}, Estimate: estimate(target, counts)}
	small := &Report{Program: "train step", Target: "v5e:1x1", Devices: 1, Division: "one device", Fit: Fit{Needs: 21 << 30, Has: 63 << 28, By: "the compiler"}}
	var b strings.Builder
	require.NoError(t, r.WriteTable(&b))
	require.NoError(t, small.WriteTable(&b))
	require.NoError(t, WriteGrowth(&b, []*Report{small, r}))
	golden.Equal(t, "testdata/tables.golden", b.String())
}
