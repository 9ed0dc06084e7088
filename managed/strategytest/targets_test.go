//go:build targets

package strategytest

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/layers"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// targets are the machines that the corpus is compiled for. Their plugins are those that lazo installs, or lie in
// $PJRT_PLUGIN_LIBRARY_PATH; without them the test fails.
var targets = []struct {
	plugin, topology string
	padded           float64 // how much larger an exchanged array may be than its elements
}{{xla.TPU, "v5e:2x2", 1.25}, {xla.CUDA, "h100:1x1x8", 1}}

// sample is a training or test step of the corpus.
type sample struct {
	name    string
	build   managed.Build
	batch   data.Batch
	test    bool
	options []managed.Option
}

// TestTargets compiles a corpus of steps for machines that are not there, on one device and over all of them. What does
// not compile has a row in testdata/targets.tsv, with its reason; a row that compiles fails the test too.
func TestTargets(t *testing.T) {
	known := knownFailures(t)
	met := map[string]bool{}
	for _, target := range targets {
		t.Run(target.topology, func(t *testing.T) {
			begin := time.Now()
			r, err := xla.OpenTopology(t.Context(), target.plugin, target.topology)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, r.Close()) })
			all, err := strategies.DataParallel(r, strategies.Parallel{})
			require.NoError(t, err)
			sharded, err := strategies.DataParallel(r, strategies.Parallel{Shard: strategies.FullyShard(r.NumDevices(), 64)})
			require.NoError(t, err)
			compiled, failed := 0, 0
			said := func(t *testing.T, strategy, name string, err error) {
				key := strings.Join([]string{target.topology, strategy, name}, "\t")
				reason, listed := known[key]
				met[key] = true
				switch {
				case err == nil && listed:
					t.Error("it compiles now: take its row out of testdata/targets.tsv")
				case err == nil:
					compiled++
				case listed && strings.Contains(err.Error(), reason):
					failed++
				default:
					t.Error(err)
				}
			}
			for _, s := range corpus(t, 8) {
				for name, on := range map[string]strategies.Strategy{"jit": strategies.Jit(r), "data_parallel": all, "sharded": sharded} {
					model := strings.HasPrefix(s.name, "model ")
					if name == "sharded" && !model || name == "jit" && !model && testing.Short() {
						continue // over all devices it is the same program, and more
					}
					t.Run(s.name+" "+name, func(t *testing.T) { said(t, name, s.name, s.compile(t, on)) })
				}
			}
			var exchanges strings.Builder
			for _, m := range layerModels() {
				t.Run("exchanges of "+m.name, func(t *testing.T) {
					exchanged, parameters, err := m.exchanges(t, all, r.NumDevices())
					if said(t, "data_parallel", m.name, err); err == nil {
						fmt.Fprintln(&exchanges, m.requireGradients(t, exchanged, parameters, target.padded))
					}
				})
			}
			t.Logf("bytes exchanged on each device, and over those of the parameters:\n%s", exchanges.String())
			t.Logf("%s: %d programs compiled, %d failed as listed, %v", target.topology, compiled, failed, time.Since(begin).Round(time.Second))
		})
	}
	for key := range known {
		require.True(t, met[key] || testing.Short(), "testdata/targets.tsv has a row %q of no program", key)
	}
}

// knownFailures are the rows of testdata/targets.tsv: topology, strategy, name and a part of the error.
func knownFailures(t *testing.T) map[string]string {
	file, err := os.Open("testdata/targets.tsv")
	require.NoError(t, err)
	defer file.Close()
	rows := map[string]string{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		at := strings.LastIndex(lines.Text(), "\t")
		require.Positive(t, at)
		rows[lines.Text()[:at]] = lines.Text()[at+1:]
	}
	return rows
}

// compile asks the compiler of the machine what it makes of the step.
func (s sample) compile(t *testing.T, on strategies.Strategy) (err error) {
	options := s.options
	if len(options) == 0 {
		options = []managed.Option{managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done()))}
	}
	state, err := managed.New(on, options...)
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(s.build)
	if s.test {
		step = managed.TestStep(s.build)
	}
	defer func() { require.NoError(t, step.Close()) }()
	p, err := step.Program(t.Context(), state, s.batch)
	if err != nil {
		return err
	}
	memory, err := p.Memory()
	if err != nil {
		return err
	}
	require.Positive(t, memory.Arguments)
	text, err := p.Optimized()
	if err != nil {
		return err
	}
	require.Contains(t, text, "ENTRY")
	if t.Failed() || testing.Verbose() {
		t.Logf("%s under %v: %v", s.name, on, p.CompileTime().Round(time.Millisecond))
	}
	return nil
}

// corpus returns the steps, for batches of this many examples.
func corpus(t *testing.T, examples int) []sample {
	pairs := func(rows int, dims ...int) data.Batch {
		b, err := managed.ZeroBatch(data.X(nil, append([]int{rows}, dims...)...), data.Y(nil, rows, 1))
		require.NoError(t, err)
		return b
	}
	tokens, err := managed.ZeroBatch(data.X([]int32(nil), examples, 16), data.Y([]int32(nil), examples, 16))
	require.NoError(t, err)
	square := func(b *managed.Builder, h *graph.Node) {
		h = nn.Dense{Units: 1}.Apply(b.Scope().In("last"), h)
		b.Loss("loss", graph.Square(graph.Sub(h, b.Field("y"))))
	}
	mlp := func(b *managed.Builder) {
		square(b, graph.Tanh(nn.Dense{Units: 32}.Apply(b.Scope().In("first"), b.Field("x"))))
	}
	all := []sample{
		{name: "model linear", batch: pairs(examples, 8), build: func(b *managed.Builder) { square(b, b.Field("x")) }},
		{name: "model mlp", batch: pairs(examples, 8), build: mlp},
		{name: "model strategytest", batch: pairs(examples, 8), build: deep},
		{name: "model transformer", batch: tokens, build: transformer},
		{name: "test strategytest", batch: pairs(examples, 8), build: deep, test: true},
	}
	for name, layer := range map[string]func(scope *model.Scope, x *graph.Node) *graph.Node{
		"conv": func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(nn.Conv{Channels: 4, Window: []int{3}, Strides: []int{2}}.Apply(s, x), 1)
		},
		"lstm": func(s *model.Scope, x *graph.Node) *graph.Node {
			out := nn.LSTM{Units: 8, Last: true}.Apply(s, x)
			return out
		},
		"gru": func(s *model.Scope, x *graph.Node) *graph.Node {
			out := nn.GRU{Units: 8, Last: true, Bidirectional: true}.Apply(s, x)
			return out
		},
		"layer norm": func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(nn.LayerNorm{}.Apply(s, x), 1)
		},
		"group norm": func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(nn.GroupNorm{Groups: 2}.Apply(s, x), 1)
		},
		"attention": func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(nn.Attention{Heads: 2}.Apply(s, x), 1)
		},
		"dropout": func(s *model.Scope, x *graph.Node) *graph.Node {
			return graph.ReduceMean(layers.Dropout(s, x, graph.Scalar(x.Graph(), x.DType(), 0.5)), 1)
		},
	} {
		all = append(all, sample{name: "layer " + name, batch: pairs(examples, 16, 8), build: func(b *managed.Builder) {
			square(b, layer(b.Scope().In("layer"), b.Field("x")))
		}})
	}
	for name, chain := range map[string]optim.Chain{
		"sgd": {}, "momentum": {optim.Momentum{Decay: 0.9}}, "nesterov": {optim.Momentum{Decay: 0.9, Nesterov: true}}, "adam": {optim.Adam{}}, "adamax": {optim.Adamax{}},
		"nadam": {optim.Nadam{}}, "lamb": {optim.LAMB{}}, "adagrad": {optim.Adagrad{}}, "adadelta": {optim.Adadelta{}}, "lion": {optim.Lion{}},
		"rmsprop": {optim.RMSProp{}}, "adafactor": {optim.Adafactor{}}, "muon": {optim.Groups(optim.Group{Name: "matrices", Match: optim.RankFrom(2), Chain: optim.Chain{optim.Muon{}}}, optim.Group{Name: "rest"})},
		"chain": {optim.SkipNonFinite(), optim.Clip{GlobalNorm: 1}, optim.Adam{}, optim.WeightDecay{Rate: 0.01}, optim.Accumulate(2)},
	} {
		all = append(all, sample{name: "optimizer " + name, batch: pairs(examples, 8), build: mlp,
			options: []managed.Option{managed.WithOptimizer(optim.New(1e-3, chain...))}})
	}
	for name, policy := range map[string]optim.Policy{"bfloat16": optim.MixedBFloat16(), "float16": optim.MixedFloat16()} {
		all = append(all, sample{name: "policy " + name, batch: pairs(examples, 8), build: mlp,
			options: []managed.Option{managed.WithOptimizer(optim.New(1e-3, optim.Adam{})), managed.WithPolicy(policy)}})
	}
	return append(all, measured(pairs(examples, 8))...)
}

// transformer is a block of attention and a layer on each place, and the logits of tokens.
func transformer(b *managed.Builder) {
	scope := b.Scope()
	embedding := nn.Embedding{Vocabulary: 64, Width: 32}
	x := embedding.Apply(scope.In("tokens"), b.Field("x"))
	x = graph.Add(x, nn.Attention{Heads: 4, Causal: true, Rotary: 1e4}.Apply(scope.In("attention"), nn.LayerNorm{}.Apply(scope.In("norm"), x)))
	x = graph.Add(x, nn.Dense{Units: 32}.Apply(scope.In("narrow"), graph.Tanh(nn.Dense{Units: 64}.Apply(scope.In("wide"), x))))
	logits := graph.LogSoftmax(embedding.Logits(scope.Shared("tokens"), x))
	b.Loss("loss", graph.Neg(graph.ReduceAllMean(graph.Mul(logits, graph.OneHot(b.Field("y"), 64, dtypes.Float32)))))
}

// measured are test steps that gather figures, of inputs that the metric takes.
func measured(batch data.Batch) (all []sample) {
	numbers := func(b *managed.Builder) []*graph.Node {
		return []*graph.Node{graph.Squeeze(b.Field("y"), 1), graph.ReduceSum(b.Field("x"), 1)}
	}
	one := func(b *managed.Builder) []*graph.Node { return numbers(b)[:1] }
	chances := func(b *managed.Builder) []*graph.Node {
		n := numbers(b)
		return []*graph.Node{graph.ConvertDType(n[0], dtypes.Bool), graph.Sigmoid(n[1])}
	}
	classes := func(b *managed.Builder) []*graph.Node {
		return []*graph.Node{graph.ConvertDType(numbers(b)[0], dtypes.Int32), graph.ArgMax(b.Field("x"), 1)}
	}
	logits := func(b *managed.Builder) []*graph.Node { return []*graph.Node{classes(b)[0], b.Field("x")} }
	for name, row := range map[string]struct {
		metric metrics.Metric
		inputs func(b *managed.Builder) []*graph.Node
	}{
		"mean": {metrics.Mean(), one}, "standard deviation": {metrics.StandardDeviation(), one}, "maximum": {metrics.Max(), one},
		"squared error": {metrics.MeanSquaredError(), numbers}, "r2": {metrics.R2(1), numbers}, "pearson": {metrics.Pearson(1), numbers},
		"auc": {metrics.AUC(100), chances}, "accuracy": {metrics.Accuracy(), classes}, "f1": {metrics.FBeta(1, 8, metrics.Macro), classes},
		"top 2": {metrics.TopK(2), logits}, "perplexity": {metrics.Perplexity(), logits},
	} {
		all = append(all, sample{name: "metric " + name, batch: batch, test: true, build: func(b *managed.Builder) {
			b.Track("figure", row.metric, nil, row.inputs(b)...)
		}})
	}
	return all
}

// The small models compile for 64 GPUs, and none ends the process that asked.
func TestTargets_manyGPUs(t *testing.T) {
	r, err := xla.OpenTopology(t.Context(), xla.CUDA, "h100:1x8x8")
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	all, err := strategies.DataParallel(r, strategies.Parallel{})
	require.NoError(t, err)
	sharded, err := strategies.DataParallel(r, strategies.Parallel{Shard: strategies.FullyShard(r.NumDevices(), 64)})
	require.NoError(t, err)
	compiled := 0
	for _, s := range corpus(t, 128) {
		if !slices.Contains([]string{"model linear", "model mlp", "model transformer", "metric mean"}, s.name) {
			continue
		}
		for name, on := range map[string]strategies.Strategy{"jit": strategies.Jit(r), "data_parallel": all, "sharded": sharded} {
			t.Run(s.name+" "+name, func(t *testing.T) {
				require.NoError(t, s.compile(t, on))
				compiled++
			})
		}
	}
	t.Logf("%d programs compiled for %d devices", compiled, r.NumDevices())
}

// A TPU's compiler refuses a program that does not fit; CUDA's compiles it, and its memory says that it does not.
func TestTargets_fit(t *testing.T) {
	whole := shapes.Make(dtypes.Float32, 1<<16, 1<<16, 6) // 96 GiB
	for _, target := range targets {
		r, err := xla.OpenTopology(t.Context(), target.plugin, target.topology)
		require.NoError(t, err)
		p, err := r.Compile("large", func(g *graph.Graph) xla.Built {
			return xla.Built{Outputs: []*graph.Node{graph.OnePlus(graph.Parameter(g, "x", whole))}, InPlace: map[int]int{0: 0}}
		})
		require.NoError(t, err)
		memory, err := p.Memory()
		if target.plugin == xla.TPU {
			require.ErrorIs(t, err, xla.ErrOutOfMemory)
		} else {
			require.NoError(t, err)
			about, err := r.DeviceAttributes(0)
			require.NoError(t, err)
			require.Greater(t, memory.Arguments, about["device_memory_bytes_limit"].(int64))
		}
		t.Logf("%s: %+v, %v", target.topology, memory, err)
		require.NoError(t, p.Close())
		require.NoError(t, r.Close())
	}
}
