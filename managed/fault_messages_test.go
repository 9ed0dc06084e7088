package managed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/golden"
	"github.com/lazo-ml/lazo/internal/memstore"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// mistake is a typical error of a new user.
type mistake struct {
	name string
	do   func(m desk) error
}

// desk has the objects with which a mistake is made.
type desk struct {
	*testing.T
	runtime *xla.Runtime
	state   *managed.State
	batch   data.Batch // x: Float32 [16 1], y: Float32 [16 1]
}

// train makes one train step through the loop, as a user's program does.
func (m desk) train(build managed.Build) error { return m.run(m.state, m.batch, build) }

func (m desk) run(state *managed.State, batch data.Batch, build managed.Build, options ...loop.Option) error {
	step := managed.TrainStep(build)
	defer func() { require.NoError(m, step.Close()) }()
	batches := func(yield func(data.Batch, error) bool) { yield(batch, nil) }
	_, err := loop.New(loop.On(loop.EachStep, step)).Run(m.Context(), state, loop.Data[data.Batch](batches), options...)
	return err
}

// parallel makes one train step of a batch of n examples on four devices.
func (m desk) parallel(n int, build managed.Build, options strategies.Parallel) error {
	return m.run(parallelState(m.T, plugintest.Devices(m.T, 4), options), first(m.T, line(m.T, n).Batches(n)), build)
}

// closed is the state after a step, closed.
func (m desk) closed() *managed.State {
	require.NoError(m, errors.Join(m.train(regression), m.state.Close()))
	return m.state
}

func batchOf(fields ...data.Field) data.Batch { return data.Batch{Fields: fields} }

var mistakes = []mistake{
	{"field unknown", func(m desk) error {
		return m.train(func(b *managed.Builder) { b.Field("image") })
	}},
	{"batch without fields", func(m desk) error { return m.run(m.state, batchOf(), func(b *managed.Builder) { b.Field("x") }) }},
	{"mask of fewer rows", func(m desk) error {
		batch := batchOf(m.batch.Fields[0], m.batch.Fields[1], data.Named(data.Mask, slices.Repeat([]bool{true}, 15), 15))
		batch.Size = 16
		return m.run(m.state, batch, regression)
	}},
	{"batch of no width", func(m desk) error {
		return m.run(m.state, batchOf(data.X([]float32{}, 16, 0), m.batch.Fields[1]), regression)
	}},
	{"resident set of one's own", func(m desk) error {
		return m.run(m.state, data.Batch{Fields: m.batch.Fields, Resident: &data.Resident{}}, regression)
	}},
	{"summary of a closed state", func(m desk) error { _, err := m.closed().SummaryOfValues(m.Context()); return err }},
	{"no model", func(m desk) error { return m.train(nil) }},
	{"loss that hangs on no parameter", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			predicted := layers.Dense(b.Scope().In("dense"), b.Field("x"), true, 1)
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), graph.StopGradient(predicted))))
		})
	}},
	{"shapes that do not broadcast", func(m desk) error {
		return m.train(func(b *managed.Builder) { graph.Add(b.Field("x"), graph.Reshape(b.Field("y"), 4, 4)) })
	}},
	{"types that differ", func(m desk) error {
		return m.train(func(b *managed.Builder) { graph.Mul(b.Field("x"), graph.Const(b.Graph(), int32(2))) })
	}},
	{"product of matrices that do not fit", func(m desk) error {
		return m.train(func(b *managed.Builder) { graph.Dot(b.Field("x"), b.Field("y")).Product() })
	}},
	{"reshape to another size", func(m desk) error {
		return m.train(func(b *managed.Builder) { graph.Reshape(b.Field("x"), 3, 5) })
	}},
	{"axis that is not there", func(m desk) error {
		return m.train(func(b *managed.Builder) { graph.ReduceSum(b.Field("x"), 2) })
	}},
	{"layer on integers", func(m desk) error {
		x := make([]int32, 16)
		return m.run(m.state, batchOf(data.X(x, 16, 1), m.batch.Fields[1]), regression)
	}},
	{"layer on another width", func(m desk) error {
		if err := m.train(regression); err != nil {
			return err
		}
		return m.run(m.state, batchOf(data.X(make([]float32, 48), 16, 3), m.batch.Fields[1]), regression)
	}},
	{"two layers in one scope", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			h := layers.Dense(b.Scope().In("layer"), b.Field("x"), true, 8)
			b.Loss("loss", graph.ReduceAllMean(losses.SquaredError(b.Field("y"), layers.Dense(b.Scope().In("layer"), h, true, 1))))
		})
	}},
	{"convolution of rows", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			layers.Convolution(b.Scope(), b.Field("x")).Channels(4).KernelSize(3).Done()
		})
	}},
	{"embedding of floats", func(m desk) error {
		return m.train(func(b *managed.Builder) { layers.Embedding(b.Scope(), b.Field("x"), dtypes.Float32, 10, 4, false) })
	}},
	{"node of another graph", func(m desk) error {
		var kept *graph.Node
		build := func(b *managed.Builder) {
			if kept == nil {
				kept = b.Field("x")
			}
			b.Loss("loss", graph.ReduceAllMean(layers.Dense(b.Scope().In("dense"), graph.Add(kept, b.Field("x")), true, 1)))
		}
		if err := m.train(build); err != nil {
			return err
		}
		return m.train(build)
	}},
	{"loss missing", func(m desk) error {
		return m.train(func(b *managed.Builder) { b.Metric("largest", b.Field("x")) })
	}},
	{"loss of integers", func(m desk) error {
		return m.train(func(b *managed.Builder) { b.Loss("errors", graph.ConvertDType(b.Field("x"), dtypes.Int32)) })
	}},
	{"loss named twice", func(m desk) error {
		return m.train(func(b *managed.Builder) { regression(b); b.Loss("loss", b.Field("x")) })
	}},
	{"nothing to train", func(m desk) error {
		return m.train(func(b *managed.Builder) { b.Loss("loss", b.Field("x")) })
	}},
	{"labels of floats", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), graph.Concatenate([]*graph.Node{b.Field("x"), b.Field("x")}, -1)))
		})
	}},
	{"labels with two axes", func(m desk) error {
		y := data.Y(make([]int32, 48), 16, 3)
		return m.run(m.state, batchOf(m.batch.Fields[0], y), func(b *managed.Builder) {
			graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), graph.Concatenate([]*graph.Node{b.Field("x"), b.Field("x")}, -1)))
		})
	}},
	{"target of another shape", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			graph.ReduceAllMean(losses.SquaredError(graph.Reshape(b.Field("y"), 4, 4), b.Field("x")))
		})
	}},
	{"panic in the model", func(m desk) error {
		return m.train(func(b *managed.Builder) { _ = m.batch.Fields[len(b.Field("x").Shape().Dimensions)] })
	}},
	{"optimizer missing", func(m desk) error { return m.run(newState(m.T, m.runtime), m.batch, regression) }},
	{"optimizer nil", func(m desk) error {
		_, err := managed.New(strategies.Jit(m.runtime), managed.WithOptimizer(nil))
		return err
	}},
	{"strategy nil", func(desk) error { _, err := managed.New(nil); return err }},
	{"strategy unknown", func(m desk) error { _, err := strategies.Parse("jitt", m.runtime); return err }},
	{"state nil", func(m desk) error { return m.run(nil, m.batch, regression) }},
	{"state trained by two", func(m desk) error {
		var second error
		other := stepper(m.T, managed.TrainStep(regression))
		require.NoError(m, m.train(func(b *managed.Builder) {
			_, _, second = other.Step(m.Context(), m.state, m.batch)
			regression(b)
		}))
		return second
	}},
	{"state asked by a step's function", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			if _, err := m.state.LearningRate(); err != nil {
				panic(err)
			}
		})
	}},
	{"training step on a view", func(m desk) error {
		view, err := m.state.View(m.Context())
		require.NoError(m, err)
		_, err = view.Step(m.Context(), managed.TrainStep(regression), m.batch)
		require.NoError(m, view.Close())
		return err
	}},
	{"state closed", func(m desk) error {
		require.NoError(m, m.state.Close())
		return m.train(regression)
	}},
	{"runtime closed before the first step", func(m desk) error {
		r := plugintest.CPU(m)
		state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
		require.NoError(m, errors.Join(err, r.Close()))
		return m.run(state, m.batch, regression)
	}},
	{"runtime closed after a step", func(m desk) error {
		r := plugintest.CPU(m)
		state, err := managed.New(strategies.Jit(r), managed.WithOptimizer(sgd()))
		require.NoError(m, err)
		step := managed.TrainStep(regression)
		_, _, err = step.Step(m.Context(), state, m.batch)
		require.NoError(m, errors.Join(err, r.Close()))
		_, _, err = step.Step(m.Context(), state, m.batch)
		return err
	}},
	{"buffer of another runtime", func(m desk) error {
		other := plugintest.CPU(m.T)
		x, err := other.BufferFromFlatData(0, []float32{1}, shapeOf(1))
		require.NoError(m, err)
		p, err := m.runtime.Compile("double", func(g *graph.Graph) xla.Built {
			x := graph.Parameter(g, "x", shapeOf(1))
			return xla.Built{Outputs: []*graph.Node{graph.Add(x, x)}}
		})
		require.NoError(m, err)
		defer func() { require.NoError(m, errors.Join(p.Close(), x.Finalize())) }()
		_, err = p.Run([]compute.Buffer{x}, nil)
		return err
	}},
	{"field with too few numbers", func(m desk) error {
		return m.run(m.state, batchOf(data.X(make([]float32, 15), 16, 1), m.batch.Fields[1]), regression)
	}},
	{"field of strings", func(m desk) error {
		return m.run(m.state, batchOf(data.Field{Name: "x", Array: data.Array{Flat: make([]string, 16), Dims: []int{16, 1}}}), regression)
	}},
	{"source that blocks", func(m desk) error {
		ctx, cancel := context.WithCancel(m.Context())
		let := make(chan struct{})
		defer close(let)
		_, err := loop.New(loop.On(loop.EachStep, stepper(m.T, managed.TrainStep(regression)))).Run(ctx, m.state, loop.Data[data.Batch](func(func(data.Batch, error) bool) {
			cancel()
			<-let
		}))
		return err
	}},
	{"variable unknown", func(m desk) error {
		if err := m.train(regression); err != nil {
			return err
		}
		_, err := m.state.Value("dense/weights")
		return err
	}},
	{"variable before the first step", func(m desk) error { _, err := m.state.Value("/dense/weights"); return err }},
	{"loss not finite", func(m desk) error {
		batch := batchOf(data.X([]float32{float32(math.NaN())}, 1, 1), data.Y([]float32{1}, 1, 1))
		return m.run(m.state, batch, regression, callbacks.NonFinite())
	}},
	{"context cancelled", func(m desk) error {
		ctx, cancel := context.WithCancelCause(m.Context())
		cancel(errors.New("the user pressed Ctrl-C"))
		_, _, err := managed.TrainStep(regression).Step(ctx, m.state, m.batch)
		return err
	}},
	{"out of memory", func(m desk) error {
		return m.train(greedy)
	}},
	{"more devices than there are", func(m desk) error {
		_, err := strategies.DataParallel(m.runtime, strategies.Parallel{Devices: 8})
		return err
	}},
	{"groups of devices that do not divide", func(m desk) error {
		_, err := strategies.DataParallel(plugintest.Devices(m.T, 4), strategies.Parallel{ModelDevices: 3})
		return err
	}},
	{"runtime of no devices", func(m desk) error {
		_, err := xla.Open(m.Context(), xla.CPU, xla.ClientOption("cpu_device_count", 0))
		return err
	}},
	{"batch that the devices do not divide", func(m desk) error { return m.parallel(10, regression, strategies.Parallel{}) }},
	{"field named mask that is none", func(m desk) error {
		mask := data.Named(data.Mask, make([]float32, 16), 16, 1)
		return m.run(m.state, data.Batch{Size: 16, Fields: append([]data.Field{mask}, m.batch.Fields...)}, regression)
	}},
	{"batch without a size whose fields disagree", func(m desk) error {
		return m.run(m.state, data.Batch{Fields: append([]data.Field{data.Named("z", make([]float32, 3), 3)}, m.batch.Fields...)}, regression)
	}},
	{"batch that counts more examples than it has", func(m desk) error {
		return m.run(m.state, data.Batch{Size: 17, Fields: m.batch.Fields}, regression)
	}},
	{"batch that counts fewer examples than it has rows", func(m desk) error {
		return m.run(m.state, data.Batch{Size: 5, Fields: m.batch.Fields}, regression)
	}},
	{"batch of less than no examples", func(m desk) error {
		_, _, err := managed.TrainStep(regression).Step(m.Context(), m.state, data.Batch{Size: -1, Fields: m.batch.Fields})
		return err
	}},
	{"batch without examples", func(m desk) error {
		return m.run(m.state, batchOf(data.X([]float32{}, 0, 1), data.Y([]float32{}, 0, 1)), regression)
	}},
	{"batch of which no example counts", func(m desk) error {
		return m.run(m.state, batchOf(append(m.batch.Fields, data.Named(data.Mask, make([]bool, 16), 16))...), regression)
	}},
	{"two fields of one name in a batch", func(m desk) error {
		return m.run(m.state, batchOf(append(m.batch.Fields, m.batch.Fields[0])...), regression)
	}},
	{"frozen scope that is not there", func(m desk) error {
		return m.run(newState(m.T, m.runtime, managed.WithOptimizer(optim.New(1, optim.Frozen(optim.Under("dense"))))), m.batch, regression)
	}},
	{"padded batch with a loss that is one number", func(m desk) error {
		return m.parallel(10, regression, strategies.Parallel{Pad: true})
	}},
	{"field without examples over devices", func(m desk) error {
		scale := data.Field{Name: "scale", Array: data.Array{Flat: []float32{2}, Dims: []int{}}}
		state := parallelState(m.T, plugintest.Devices(m.T, 4), strategies.Parallel{})
		return m.run(state, data.Batch{Size: 16, Fields: append([]data.Field{scale}, m.batch.Fields...)}, regression)
	}},
	{"metric without its inputs", func(m desk) error {
		return m.train(func(b *managed.Builder) { b.Track("accuracy", metrics.Accuracy(), nil, b.Field("x")) })
	}},
	{"weights of another length", func(m desk) error {
		return m.train(func(b *managed.Builder) {
			b.Track("mean", metrics.Mean(), graph.Reshape(b.Field("y"), 8, 2), b.Field("x"))
		})
	}},
	{"only what is not there", func(m desk) error {
		step := managed.TrainStep(regression, managed.TrainOnly(func(name string) bool { return name == "dense/weights" }))
		_, _, err := step.Step(m.Context(), m.state, m.batch)
		return errors.Join(err, step.Close())
	}},
	{"policy of integers", func(m desk) error {
		_, err := managed.New(strategies.Jit(m.runtime), managed.WithPolicy(optim.Policy{Parameters: dtypes.Float32, Compute: dtypes.Int8, Outputs: dtypes.Float32}))
		return err
	}},
	{"averages before any training", func(m desk) error {
		average := optim.Average{Decay: 0.9}
		step := managed.TestStep(func(b *managed.Builder) { average.In(b.Scope(), b.Graph(), func() { regression(b) }) })
		_, _, err := step.Step(m.Context(), m.state, m.batch)
		return errors.Join(err, step.Close())
	}},
	{"averages in the first training step", func(m desk) error {
		average := optim.Average{Decay: 0.9}
		return m.run(newState(m.T, m.runtime, managed.WithOptimizer(optim.New(1, average))), m.batch, func(b *managed.Builder) {
			average.In(b.Scope(), b.Graph(), func() { regression(b) })
		})
	}},
	{"averages of an optimizer without an Average", func(m desk) error {
		if err := m.train(regression); err != nil {
			return err
		}
		step := managed.TestStep(func(b *managed.Builder) {
			optim.Average{Decay: 0.9}.In(b.Scope(), b.Graph(), func() { regression(b) })
		})
		_, _, err := step.Step(m.Context(), m.state, m.batch)
		return errors.Join(err, step.Close())
	}},
	{"given value of another shape", func(m desk) error {
		values := managed.WithValues(map[string]*tensors.Tensor{"/dense/dense/weights": tensors.FromValue([]float32{1}), "/dense/biases": tensors.FromValue([]float32{1})})
		return m.run(newState(m.T, m.runtime, managed.WithOptimizer(sgd()), values), m.batch, regression)
	}},
	{"value of another shape", func(m desk) error {
		if err := m.train(regression); err != nil {
			return err
		}
		return m.state.SetValue("/dense/dense/weights", tensors.FromValue([]float32{1}))
	}},
	{"two options Resume for one folder", func(m desk) error {
		folder, err := checkpoint.OpenStore(m.Context(), &memstore.Memory{}, "runs", checkpoint.Options{})
		require.NoError(m, err)
		return m.run(m.state, m.batch, regression, folder.Resume(checkpoint.Every(loop.Steps(5))), folder.Resume(checkpoint.KeepBest("loss")))
	}},
	{"newer checkpoints in the folder", func(m desk) error {
		folder, err := checkpoint.OpenStore(m.Context(), &memstore.Memory{}, "runs", checkpoint.Options{})
		require.NoError(m, err)
		require.NoError(m, m.train(regression))
		resume := checkpoint.Options{When: loop.AtStart}
		pause := loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { return loop.ErrPause })
		require.NoError(m, m.run(m.state, m.batch, regression, folder.Resume(resume), pause))
		require.NoError(m, m.run(m.state, m.batch, regression, folder.Resume(resume)))
		resume.At = new(checkpoint.Step)
		return m.run(m.state, m.batch, regression, folder.Resume(resume))
	}},
}

// F33: the first three lines of an error are enough to mend each of the common mistakes. testdata/errors.golden is to
// be read, not only compared.
func TestF33_messages(t *testing.T) {
	r := plugintest.CPU(t)
	lines := regexp.MustCompile(`(_test\.go):\d+`)
	var got strings.Builder
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			m := desk{T: t, runtime: r, batch: first(t, line(t, 16).Batches(16))}
			m.state = newState(t, r, managed.WithOptimizer(sgd()))
			err := row.do(m)
			require.Error(t, err)
			if strings.HasPrefix(err.Error(), "loop: ") {
				first, _, _ := strings.Cut(err.Error(), "\n")
				require.NotRegexp(t, `: (data|hlo|managed|metrics|optim|pjrt|strategies|xla): `, first, "R41: one package's name, the outermost")
			}
			text := lines.ReplaceAllString(err.Error(), "$1:LINE")
			// The plugin's own words differ: of PJRT API 0.81 and of 0.106.
			text = strings.Replace(text, "INTERNAL: Compute error: Error preparing computation: Out of", "RESOURCE_EXHAUSTED: Out of", 1)
			fmt.Fprintf(&got, "== %s\n%s\n\n", row.name, text)
		})
	}
	golden.Equal(t, "testdata/errors.golden", got.String())
	t.Logf("F33: %d mistakes", len(mistakes))
}
