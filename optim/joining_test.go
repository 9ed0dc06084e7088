package optim_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
)

// links are those of testdata/joining.py, for w and b.
var links = map[string]func(name string) optim.Transformation{
	"momentum":  always(optim.Momentum{Decay: 0.9}),
	"nesterov":  always(optim.Momentum{Decay: 0.9, Nesterov: true}),
	"adam":      always(optim.Adam{}),
	"adamax":    always(optim.Adamax{}),
	"rmsprop":   always(optim.RMSProp{}),
	"adagrad":   always(optim.Adagrad{}),
	"adadelta":  always(optim.Adadelta{}),
	"nadam":     always(optim.Nadam{}),
	"lion":      always(optim.Lion{}),
	"lamb":      always(optim.LAMB{Decay: optim.WeightDecay{Rate: 0.05}}),
	"adafactor": always(optim.Adafactor{Factored: 4}),
	"muon": func(name string) optim.Transformation {
		if name == "b" {
			return optim.Adam{}
		}
		return optim.Muon{}
	},
	"clip":                always(optim.Clip{Value: 0.25}),
	"clip by norm":        always(optim.Clip{Norm: 0.5}),
	"clip by global norm": always(optim.Clip{GlobalNorm: 0.75}),
	"trust ratio":         always(optim.TrustRatio()),
	"weight decay":        always(optim.WeightDecay{Rate: 0.1}),
	"scale":               always(optim.Scale(0.5)),
	"schedule":            always(optim.ScaleBySchedule(warmCosine())),
	"masked":              always(optim.Masked(optim.Matrices, optim.Adam{})),
	"accumulate":          always(optim.Accumulate(3)),
	"skip non-finite":     always(optim.SkipNonFinite()),
}

func always(t optim.Transformation) func(string) optim.Transformation {
	return func(string) optim.Transformation { return t }
}

// modes report which of w and b a step trains.
var modes = map[string]func(step int) (w, b bool){
	"late":     func(step int) (bool, bool) { return true, step >= 50 },
	"in turns": func(step int) (bool, bool) { return step%2 == 0, step%2 == 1 },
	"seldom":   func(step int) (bool, bool) { return true, step%3 == 2 },
}

// ends are the results of testdata/joining.py: for each chain and mode some elements of the final w and b.
func ends(t testing.TB) map[string]map[string][]float64 {
	t.Helper()
	raw, err := os.ReadFile("testdata/joining.json")
	require.NoError(t, err)
	var f struct {
		Ends map[string]map[string][]float64
	}
	require.NoError(t, json.Unmarshal(raw, &f))
	require.Len(t, f.Ends, len(links)*(len(links)+1))
	return f.Ends
}

// copies are problems like that of bowl in one model, in float64. Each has its scope and, if it is bad, a NaN in its
// gradient in some steps.
type copies struct {
	bad   []bool
	steps map[[2]bool]*managed.Stepper
}

func newCopies(t *testing.T, bad ...bool) *copies {
	c := &copies{bad: bad, steps: map[[2]bool]*managed.Stepper{}}
	for _, which := range [][2]bool{{true, true}, {true, false}, {false, true}} {
		step := managed.TrainStep(c.build, managed.TrainOnly(func(name string) bool {
			return which[0] && strings.HasSuffix(name, "/w") || which[1] && strings.HasSuffix(name, "/b")
		}))
		t.Cleanup(func() { require.NoError(t, step.Close()) })
		c.steps[which] = step
	}
	return c
}

func scopeOf(i int) string { return fmt.Sprintf("c%d", i) }

func (c *copies) build(b *managed.Builder) {
	g := b.Graph()
	x := graph.ConvertDType(graph.Reshape(b.Field("x"), size+1), dtypes.Float64)
	bad := graph.Reshape(graph.Slice(x, graph.AxisRange(size, size+1)))
	double := func(v []float32) []float64 {
		d := make([]float64, len(v))
		for i := range v {
			d[i] = float64(v[i])
		}
		return d
	}
	var loss *graph.Node
	for i := range c.bad {
		part := func(name string, start, target, h []float32, dims []int, slope *graph.Node) {
			p := b.Scope().At("%s", scopeOf(i)).VariableWithValue(name, tensors.FromFlatDataAndDimensions(double(start), dims...)).NodeValue(g)
			constant := func(v []float32) *graph.Node {
				return graph.Const(g, tensors.FromFlatDataAndDimensions(double(v), dims...))
			}
			slope = graph.Reshape(slope, dims...)
			if c.bad[i] {
				slope = graph.Add(slope, bad)
			}
			sum := graph.ReduceAllSum(graph.Add(graph.MulScalar(graph.Mul(constant(h), graph.Square(graph.Sub(p, graph.AddScalar(constant(target), 0.0123)))), 0.5), graph.Mul(p, slope)))
			if loss == nil {
				loss = sum
			} else {
				loss = graph.Add(loss, sum)
			}
		}
		part("w", made(24, 5, 11, 8, 0), made(24, 7, 13, 8, 0), curvature(24, 5, 8), []int{6, 4}, graph.Slice(x, graph.AxisRange(0, matrixSize)))
		part("b", made(4, 3, 7, 4, 0), made(4, 5, 7, 2, 0), curvature(4, 3, 4), []int{4}, graph.Slice(x, graph.AxisRange(matrixSize, size)))
	}
	b.Loss("loss", loss)
}

// batches are those of joining.py: the slopes, and the addends of the bad ones.
func (c *copies) batches(t *testing.T) []data.Batch {
	var all []data.Batch
	for step := range 100 {
		x := append(made(size, 13, 17, 16, step), 0)
		if slices.Contains([]int{6, 22, 23, 60}, step) {
			x[size] = float32(math.NaN())
		}
		all = append(all, batchOf(t, x, 1))
	}
	return all
}

// train makes the steps of a mode, as blocks.
func (c *copies) train(t *testing.T, state *managed.State, mode string, batches []data.Batch, first int) {
	for from := 0; from < len(batches); {
		w, b := modes[mode](first + from)
		to := from + 1
		for ; to < len(batches); to++ {
			if w2, b2 := modes[mode](first + to); w2 != w || b2 != b {
				break
			}
		}
		train(t, c.steps[[2]bool{w, b}], state, batches[from:to])
		from = to
	}
}

// apart is the distance of a copy from optax's result.
func (c *copies) apart(t *testing.T, state *managed.State, i int, want []float64) float64 {
	value := func(name string) []float64 {
		v, err := state.Value("/" + scopeOf(i) + "/" + name)
		require.NoError(t, err)
		flat, err := tensors.CopyFlatData[float64](v)
		require.NoError(t, err)
		return flat
	}
	dot := func(v []float64) (sum float64) {
		for i := range v {
			sum += v[i] * float64(i+1) / float64(len(v))
		}
		return sum
	}
	w, b := value("w"), value("b")
	most := 0.0
	for i, got := range []float64{w[0], w[23], dot(w), b[0], b[3], dot(b)} {
		most = max(most, math.Abs(got-want[i])/max(1, math.Abs(want[i])))
		if math.IsNaN(got) != math.IsNaN(want[i]) {
			return math.Inf(1)
		}
	}
	return most
}

// joiningTolerance is the allowed difference from optax of a run in float64, relative above 1.
const joiningTolerance = 1e-6

// everySecond holds its parameters back in the first step and in every second one after it.
type everySecond struct{}

func (everySecond) Name() string { return "every_second" }

func (everySecond) Update(s *optim.Step) {
	odd := s.Number("odd", false)
	due := odd.NodeValue(s.Graph())
	odd.SetNodeValue(graph.LogicalNot(due))
	s.Require(due)
}

// alone are the links that neither mix parameters nor count for all of them. Without groups, too, they follow a fresh
// optax for each parameter.
var alone = []string{"momentum", "nesterov", "adam", "adamax", "rmsprop", "adagrad", "adadelta", "nadam", "lion", "lamb", "adafactor", "masked", "accumulate",
	"accumulate, adam", "adam, accumulate", "nadam, accumulate", "accumulate, adafactor", "accumulate, masked"}

// line is a model of a body and a head, each a number, trained to 0; a step can train either.
func line(b *managed.Builder) *graph.Node {
	of := func(name string) *graph.Node {
		return b.Scope().At("%s", name).VariableWithValue("v", float32(1)).NodeValue(b.Graph())
	}
	return graph.Add(graph.MulScalar(of("body"), 10), of("head"))
}

func lineStep(t *testing.T, parts ...string) *managed.Stepper {
	step := managed.TrainStep(func(b *managed.Builder) { b.Loss("loss", graph.Square(line(b))) }, managed.TrainOnly(func(name string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.HasPrefix(name, "/"+part+"/") })
	}))
	t.Cleanup(func() { require.NoError(t, step.Close()) })
	return step
}

// averaged returns the result of a test step with averages.
func averaged(t *testing.T, state *managed.State, test *managed.Stepper, batch data.Batch) float64 {
	_, logs, err := test.Step(t.Context(), state, batch)
	require.NoError(t, err)
	v, err := logs.Float("averaged")
	require.NoError(t, err)
	return v
}

// The average of a parameter that joins late, or is trained in few steps, is that of its own values; a constant has
// itself.
func TestS12_averagesOfLateParameters(t *testing.T) {
	r := plugintest.CPU(t)
	average := optim.Average{Decay: 0.999}
	state := newState(t, r, optim.New(1e-9, average))
	head, both := lineStep(t, "head"), lineStep(t, "head", "body")
	batch := batchOf(t, []float32{1}, 1)
	test := averageTest(t, average)
	for i := range 100 {
		step := head
		if i > 50 && i%5 == 0 {
			step = both
		}
		train(t, step, state, []data.Batch{batch})
	}
	require.InDelta(t, 11, averaged(t, state, test, batch), 1e-3)
	require.Equal(t, 100.0, number(t, state, "/optimizers/average/head/v/count"))
	require.Equal(t, 9.0, number(t, state, "/optimizers/average/body/v/count"))
}

func averageTest(t *testing.T, average optim.Average) *managed.Stepper {
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Metric("averaged", line(b)) })
	})
	t.Cleanup(func() { require.NoError(t, test.Close()) })
	return test
}

// A test step uses the averages that exist when it runs: also those of parameters that were trained after its first
// run, and in a resumed run those that no training step has asked for yet.
func TestS13_averagesWhenTheStepRuns(t *testing.T) {
	r := plugintest.CPU(t)
	average := optim.Average{Decay: 0.5}
	rule := func() *optim.Optimizer { return optim.New(0.001, average) }
	batch := batchOf(t, []float32{1}, 1)
	head, both, test, other := lineStep(t, "head"), lineStep(t, "head", "body"), averageTest(t, average), averageTest(t, average)
	state := newState(t, r, rule())
	train(t, head, state, []data.Batch{batch})
	averaged(t, state, test, batch) // the body has none
	train(t, both, state, slices.Repeat([]data.Batch{batch}, 3))
	want := averaged(t, state, other, batch)
	require.NotEqual(t, want, 10*float64(floats(t, state, "/body/v")[0])+float64(floats(t, state, "/head/v")[0]))
	require.Equal(t, want, averaged(t, state, test, batch), "the step that ran before the body was trained")

	// Both continue with the head alone.
	train(t, head, state, []data.Batch{batch})
	want = averaged(t, state, test, batch)
	content, err := state.Content(t.Context())
	require.NoError(t, err)
	folder, err := checkpoint.Open(t.TempDir(), checkpoint.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, folder.Close()) }()
	require.NoError(t, folder.Save(t.Context(), 5, content))
	saved, err := folder.Load(t.Context(), 5)
	require.NoError(t, err)
	resumed := newState(t, r, rule())
	require.NoError(t, resumed.Restore(t.Context(), saved))
	require.NoError(t, head.Prepare(t.Context(), resumed, batch))
	require.Equal(t, want, averaged(t, resumed, test, batch), "resumed, with the head's step alone")
	for range 3 {
		train(t, both, state, []data.Batch{batch})
		train(t, both, resumed, []data.Batch{batch})
		require.Equal(t, averaged(t, state, test, batch), averaged(t, resumed, test, batch))
	}
	require.Equal(t, bits(t, state), bits(t, resumed))
}
