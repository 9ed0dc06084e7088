package nn_test

import (
	"encoding/json"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/layers/activation"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// trajectory is one of testdata/trajectories.json.
type trajectory struct {
	Rate    float64              `json:"rate"`
	Batch   int                  `json:"batch"`
	Weights map[string]beginning `json:"weights"`
	Losses  []float64            `json:"losses"`  // of JAX in float64
	Float32 [2]float64           `json:"float32"` // error of JAX in float32: mean over the steps, and maximum
	Ulps    [][2]float64         `json:"ulps"`    // the same, from initial values that differ by a unit in the last place
}

// beginning is the initial value of a weight.
type beginning struct {
	Dims  []int   `json:"dims"`
	Scale float64 `json:"scale"`
	Mean  float64 `json:"mean"`
}

// draws returns n numbers of 64 bits, seeded by a name, as testdata/trajectories.py does.
func draws(name string, n int) []uint64 {
	list, state := make([]uint64, n), uint64(crc32.ChecksumIEEE([]byte(name)))
	for i := range list {
		state += 0x9E3779B97F4A7C15
		x := (state ^ state>>30) * 0xBF58476D1CE4E5B9
		x = (x ^ x>>27) * 0x94D049BB133111EB
		list[i] = x ^ x>>31
	}
	return list
}

func uniform(name string, n int, scale float64) []float32 {
	list := make([]float32, n)
	for i, x := range draws(name, n) {
		list[i] = (float32(x>>40)/(1<<23) - 1) * float32(scale)
	}
	return list
}

func below(name string, n int, limit uint64) []int32 {
	list := make([]int32, n)
	for i, x := range draws(name, n) {
		list[i] = int32(x % limit)
	}
	return list
}

// fields are the data of a model by name, flat, with the dimensions of an example.
type fields map[string]field

type field struct {
	flat any
	dims []int
}

// weightsOf returns a model's variables by name.
type weightsOf func(name string) *node

// trained is a model of testdata/trajectories.py.
type trained struct {
	data func() fields
	loss func(b *managed.Builder, w weightsOf) *node
}

var trajectories = map[string]trained{
	"transformer": {tokens, transformer},
	"lstm": {sums, func(b *managed.Builder, _ weightsOf) *node {
		return summed(b, nn.LSTM{Units: 16, Last: true}.Apply(b.Scope().In("lstm"), b.Field("x")))
	}},
	"gru": {sums, func(b *managed.Builder, _ weightsOf) *node {
		return summed(b, nn.GRU{Units: 16, Last: true, Mask: b.Field("n")}.Apply(b.Scope().In("gru"), b.Field("x")))
	}},
	"cnn":     {digits, convolutional},
	"wgan-gp": {generated, wassersteinGAN},
	"deq":     {points, equilibrium},
	"maml":    {tasks, metaLearned},
}

func summed(b *managed.Builder, last *node) *node {
	return meanSquare(graph.Sub(nn.Dense{Units: 1}.Apply(b.Scope().In("out"), last), b.Field("y")))
}

func meanSquare(x *node) *node { return graph.ReduceAllMean(graph.Square(x)) }

func denseOf(w weightsOf, at string, x *node) *node {
	return graph.Add(graph.Dot(x, w(at+"/kernel")).MatMul(), graph.ExpandLeftToRank(w(at+"/bias"), x.Rank()))
}

func crossEntropy(b *managed.Builder, logits *node) *node {
	return graph.ReduceAllMean(losses.CrossEntropy(b.Field("y"), logits))
}

func tokens() fields {
	const n, places = 64, 12
	first, noise := below("tokens", n*2, 11), below("noise", n*(places+1), 3)
	var x, y []int32
	for i := range n {
		row := make([]int32, places+1)
		copy(row, first[2*i:2*i+2])
		for t := 2; t <= places; t++ {
			row[t] = (2*row[t-1] + row[t-2] + noise[i*(places+1)+t]/2) % 11
		}
		x, y = append(x, row[:places]...), append(y, row[1:]...)
	}
	return fields{"x": {x, []int{places}}, "y": {y, []int{places}}}
}

func transformer(b *managed.Builder, w weightsOf) *node {
	s := b.Scope()
	x := nn.Embedding{Vocabulary: 11, Width: 16, DType: w("logits/bias").DType()}.Apply(s.In("tokens"), b.Field("x"))
	x = nn.Positions{Length: 12}.Apply(s.In("positions"), x)
	for _, name := range []string{"block_0", "block_1"} {
		at := s.In("%s", name)
		h := nn.LayerNorm{}.Apply(at.In("norm_0"), x)
		x = graph.Add(x, nn.Attention{Heads: 4, Causal: true}.Apply(at.In("attention"), h))
		h = nn.LayerNorm{}.Apply(at.In("norm_1"), x)
		h = activation.Gelu(nn.Dense{Units: 32}.Apply(at.In("up"), h))
		x = graph.Add(x, nn.Dense{Units: 16}.Apply(at.In("down"), h))
	}
	return crossEntropy(b, denseOf(w, "logits", x))
}

func sums() fields {
	const n, places, width = 64, 24, 3
	x := uniform("series", n*places*width, 1)
	at := func(i, t, k int) float32 { return x[(i*places+t)*width+k] }
	y, lengths := make([]float32, n), below("lengths", n, places)
	for i := range y {
		sum := 0.0
		for t := range places {
			sum += float64(at(i, t, 0) * at(i, (t+places-1)%places, 1))
		}
		y[i] = float32(sum)
		lengths[i]++
	}
	return fields{"x": {x, []int{places, width}}, "n": {lengths, nil}, "y": {y, []int{1}}}
}

func digitsOf(n int) (x []float32, y []int32) {
	train, _ := must.M2(data.Digits())
	for b, err := range data.Take(train.Batches(n).All(), 1) {
		must.M(err)
		x, y = b.Fields[0].Array.Flat.([]float32), b.Fields[1].Array.Flat.([]int32)
	}
	return x, y
}

func digits() fields {
	x, y := digitsOf(1408)
	return fields{"x": {x, []int{8, 8, 1}}, "y": {y, nil}}
}

func convolutional(b *managed.Builder, _ weightsOf) *node {
	x := b.Field("x")
	for name, channels := range []int{8, 16} {
		x = nn.Relu(nn.Conv{Channels: channels, Window: []int{3}}.Apply(b.Scope().In("conv_%d", name), x))
		x = graph.MaxPool(x).Window(2).Done()
	}
	return crossEntropy(b, nn.Dense{Units: 10}.Apply(b.Scope().In("out"), graph.Reshape(x, -1, 64)))
}

func generated() fields {
	const n = 512
	x, _ := digitsOf(n)
	mixture := uniform("mixture", n, 0.5)
	for i := range mixture {
		mixture[i] += 0.5
	}
	return fields{"x": {x, []int{8, 8, 1}}, "z": {uniform("noise of the generator", n*4, 1), []int{4}}, "e": {mixture, []int{1, 1, 1}}}
}

func wassersteinGAN(b *managed.Builder, w weightsOf) *node {
	critic := func(w weightsOf, x *node) *node {
		conv := func(at string, x *node, stride int) *node {
			before := 2 - stride
			x = graph.Convolve(x, w(at+"/kernel")).Strides(stride).PaddingPerDim([][2]int{{before, 1}, {before, 1}}).Done()
			x = graph.Add(x, graph.ExpandLeftToRank(w(at+"/bias"), 4))
			return graph.Where(graph.GreaterThan(x, graph.ScalarZero(x.Graph(), x.DType())), x, graph.MulScalar(x, 0.2))
		}
		x = conv("critic/conv_1", conv("critic/conv_0", x, 2), 1)
		x = graph.MaxPool(x).Window(2).Done()
		return denseOf(w, "critic/out", graph.Reshape(x, -1, 64))
	}
	x, e := b.Field("x"), b.Field("e")
	made := graph.Sigmoid(denseOf(w, "generator/out", graph.Tanh(denseOf(w, "generator/hidden", b.Field("z")))))
	made = graph.Reshape(made, x.Shape().Dimensions...)
	fixed := graph.StopGradient(made)
	mixed := graph.Add(graph.Mul(e, x), graph.Mul(graph.OneMinus(e), fixed))
	slope := ops.Gradient(graph.ReduceAllSum(critic(w, mixed)), mixed)[0]
	norm := graph.Sqrt(graph.AddScalar(graph.ReduceSum(graph.Square(slope), 1, 2, 3), 1e-12))
	penalty := meanSquare(graph.AddScalar(norm, -1))
	still := func(name string) *node { return graph.StopGradient(w(name)) }
	loss := graph.Sub(graph.ReduceAllMean(critic(w, fixed)), graph.ReduceAllMean(critic(w, x)))
	return graph.Sub(graph.Add(loss, graph.MulScalar(penalty, 10)), graph.ReduceAllMean(critic(still, made)))
}

func points() fields {
	const n = 64
	x := uniform("points", n*4, 1)
	y := make([]float32, n)
	for i := range y {
		y[i] = float32(x[4*i]*x[4*i+1]) + x[4*i+2]
	}
	return fields{"x": {x, []int{4}}, "y": {y, []int{1}}}
}

// equilibrium is the fixed point of a cell, with the gradient of the implicit function theorem.
func equilibrium(b *managed.Builder, w weightsOf) *node {
	inner := w("deq/inner")
	injected := graph.Add(graph.Dot(b.Field("x"), w("deq/outer")).Product(), graph.ExpandLeftToRank(w("deq/bias"), 2))
	cell := func(z, inner, injected *node) *node {
		return graph.Tanh(graph.Add(graph.Dot(z, inner).Product(), injected))
	}
	turns := func(from *node, turn func(x *node) *node) *node {
		last, _ := ops.Scan([]*node{from}, nil, func(carry, _ []*node) (next, out []*node) { return []*node{turn(carry[0])}, nil }, ops.Length(30))
		return last[0]
	}
	z := graph.StopGradient(turns(graph.ZerosLike(injected), func(z *node) *node { return cell(z, inner, injected) }))
	out := graph.IdentityWithCustomGradient(cell(z, inner, injected), func(_, v *node) *node {
		return turns(v, func(u *node) *node {
			at := graph.Identity(z)
			return graph.Add(v, ops.VJP([]*node{cell(at, inner, injected)}, []*node{u}, []*node{at})[0])
		})
	})
	return meanSquare(graph.Sub(denseOf(w, "out", out), b.Field("y")))
}

func tasks() fields {
	const n, shots = 32, 16
	xs := uniform("shots", n*shots, 2)
	a, b, c := uniform("a", n, 1), uniform("b", n, 1), uniform("c", n, 1)
	f := fields{}
	for k, name := range []string{"", "2"} {
		var x, y []float32
		for i := range n {
			for _, v := range xs[i*shots+k*shots/2:][:shots/2] {
				x = append(x, v)
				y = append(y, float32(float32(a[i]*v)*v)+float32(b[i]*v)+c[i])
			}
		}
		f["x"+name], f["y"+name] = field{x, []int{shots / 2, 1}}, field{y, []int{shots / 2, 1}}
	}
	return f
}

// metaLearned is the mean over tasks of the error after five steps of gradient descent.
func metaLearned(b *managed.Builder, w weightsOf) *node {
	var begin []*node
	for _, name := range []string{"hidden/kernel", "hidden/bias", "out/kernel", "out/bias"} {
		begin = append(begin, w(name))
	}
	failure := func(weights []*node, x, y *node) *node {
		of := func(name string) *node {
			return weights[map[string]int{"hidden/kernel": 0, "hidden/bias": 1, "out/kernel": 2, "out/bias": 3}[name]]
		}
		return meanSquare(graph.Sub(denseOf(of, "out", graph.Tanh(denseOf(of, "hidden", x))), y))
	}
	_, losses := ops.Scan(nil, []*node{b.Field("x"), b.Field("y"), b.Field("x2"), b.Field("y2")}, func(_, task []*node) (next, out []*node) {
		learned, _ := ops.Scan(begin, nil, func(weights, _ []*node) (next, out []*node) {
			for i, g := range ops.Gradient(failure(weights, task[0], task[1]), weights...) {
				next = append(next, graph.Sub(weights[i], graph.MulScalar(g, 0.125)))
			}
			return next, nil
		}, ops.Length(5))
		return nil, []*node{failure(learned, task[2], task[3])}
	})
	return graph.ReduceAllMean(losses[0])
}

// weightsIn returns variables of a state by their paths.
func weightsIn(b *managed.Builder, of map[string]beginning, kind dtypes.DType) weightsOf {
	made := map[string]*node{}
	return func(name string) *node {
		if made[name] == nil {
			made[name] = variableOf(b, of, kind, name).NodeValue(b.Graph())
		}
		return made[name]
	}
}

func variableOf(b *managed.Builder, of map[string]beginning, kind dtypes.DType, name string) *model.Variable {
	parts, scope := strings.Split(name, "/"), b.Scope()
	for _, p := range parts[:len(parts)-1] {
		scope = scope.At("%s", p)
	}
	return scope.VariableWithShape(parts[len(parts)-1], shapes.Make(kind, of[name].Dims...))
}

// as converts float32 values to another dtype and leaves others unchanged.
func as(flat any, kind dtypes.DType) any {
	list, ok := flat.([]float32)
	if !ok || kind == dtypes.Float32 {
		return flat
	}
	wide := make([]float64, len(list))
	for i, v := range list {
		wide[i] = float64(v)
	}
	return wide
}

// beginnings returns the initial weights of a model by full name.
func beginnings(model string, of map[string]beginning, kind dtypes.DType) map[string]*tensors.Tensor {
	values := map[string]*tensors.Tensor{}
	for path, w := range of {
		shape := shapes.Make(dtypes.Float32, w.Dims...)
		flat := uniform(model+" "+path, shape.Size(), w.Scale)
		for i := range flat {
			flat[i] += float32(w.Mean)
		}
		if wide, ok := as(flat, kind).([]float64); ok {
			values["/"+path] = tensors.FromFlatDataAndDimensions(wide, w.Dims...)
		} else {
			values["/"+path] = tensors.FromFlatDataAndDimensions(flat, w.Dims...)
		}
	}
	return values
}

func (f fields) set(kind dtypes.DType) *data.Set {
	var list []data.Field
	for name, f := range f {
		size := 1
		for _, n := range f.dims {
			size *= n
		}
		list = append(list, data.Field{Name: name, Array: data.Array{Flat: as(f.flat, kind), Dims: append([]int{lengthOf(f.flat) / size}, f.dims...)}})
	}
	return must.M1(data.New(list...))
}

// run trains a model as testdata/trajectories.py does, and returns its losses.
func (m trained) run(t *testing.T, name string, of trajectory, kind dtypes.DType) []float64 {
	t.Helper()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(optim.New(of.Rate, optim.Adam{})),
		managed.WithValues(beginnings(name, of.Weights, kind)))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(func(b *managed.Builder) { b.Loss("loss", m.loss(b, weightsIn(b, of.Weights, kind))) })
	defer func() { require.NoError(t, step.Close()) }()
	batches := m.data().set(kind).Batches(of.Batch)
	result, err := loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, batches, loop.Until(loop.Steps(int64(len(of.Losses)))))
	require.NoError(t, err)
	_, losses, err := result.History.Series("loss")
	require.NoError(t, err)
	return losses
}

func lengthOf(flat any) int {
	if list, ok := flat.([]int32); ok {
		return len(list)
	}
	return len(flat.([]float32))
}

// apart is the mean and maximum difference of two series.
func apart(a, b []float64) (of [2]float64) {
	for i := range a {
		far := math.Abs(a[i] - b[i])
		of[0] += far / float64(len(a))
		of[1] = max(of[1], far)
	}
	return of
}

// 200 steps of training follow JAX's. In float64 all losses equal JAX's, up to the rounding of logs to float32. In
// float32 the mean and maximum errors are at most ten times JAX's own. docs/maintain/numerics.md has the numbers.
func TestTrajectories(t *testing.T) {
	text, err := os.ReadFile("testdata/trajectories.json")
	require.NoError(t, err)
	var peers map[string]trajectory
	require.NoError(t, json.Unmarshal(text, &peers))
	require.Len(t, peers, len(trajectories))
	names := trajectoriesTried
	if names == nil {
		names = slices.Sorted(maps.Keys(trajectories))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			m, peer := trajectories[name], peers[name]
			greatest := 1.0
			for _, l := range peer.Losses {
				greatest = max(greatest, math.Abs(l))
			}
			wide := apart(m.run(t, name, peer, dtypes.Float64), peer.Losses)
			require.LessOrEqual(t, wide[1], greatest*0x1p-23, "float64: the greatest difference")
			if trajectoriesTried != nil {
				return
			}
			off := apart(m.run(t, name, peer, dtypes.Float32), peer.Losses)
			t.Logf("| %s | %.3g to %.3g | %.2g, %.2g | %.2g, %.2g | %.1f, %.1f | %.1g |", name, peer.Losses[0], peer.Losses[len(peer.Losses)-1],
				peer.Float32[0], peer.Float32[1], off[0], off[1], off[0]/peer.Float32[0], off[1]/peer.Float32[1], wide[1])
			for i, what := range []string{"mean", "greatest"} {
				require.LessOrEqual(t, off[i], 10*peer.Float32[i], "float32: the %s difference", what)
			}
		})
	}
}
