package nn_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/ops"
)

// followed is one of testdata/methods.json.
type followed struct {
	Batch   int                  `json:"batch"`
	Weights map[string]beginning `json:"weights"`
	Losses  []float64            `json:"losses"`  // of JAX in float64, of all turns in order
	Ends    map[string][]float64 `json:"ends"`    // some elements of each weight after the last step
	Float32 [2]float64           `json:"float32"` // error of JAX in float32: mean of the losses, root mean square of Ends
	Ulps    [][2]float64         `json:"ulps"`    // the same, from initial values that differ by a unit in the last place
}

// method is one of testdata/methods.py.
type method struct {
	data      func() fields
	optimizer *optim.Optimizer
	turns     []turn
	averaged  optim.Average // its loss is computed after the last step
}

// turn is a step of a method, in some of its iterations.
type turn struct {
	trains func(path string) bool // nil: all
	when   func(i int) bool       // nil: always
	own    string                 // scope of a step's own optimizer; "": the state's
	loss   func(s *stage) *node
}

// stage has the inputs of a loss.
type stage struct {
	*managed.Builder
	of   map[string]beginning
	kind dtypes.DType
	w    weightsOf
}

// trained returns the names of the weights that match, in order.
func (s *stage) trained(match func(path string) bool) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.of)), func(name string) bool { return !match("/" + name) })
}

// given calls f while variables have other values.
func (s *stage) given(names []string, values []*node, f func() *node) *node {
	for i, name := range names {
		v := variableOf(s.Builder, s.of, s.kind, name)
		own := v.NodeValue(s.Graph())
		v.SetNodeValue(values[i])
		defer v.SetNodeValue(own)
	}
	return f()
}

func (s *stage) values(names []string) []*node {
	list := make([]*node, len(names))
	for i, name := range names {
		list[i] = s.w(name)
	}
	return list
}

// network is a perceptron at a scope.
func (s *stage) network(at string, x *node, activation func(x *node) *node, units ...int) *node {
	scope := s.Scope()
	if at != "" {
		scope = scope.At("%s", at)
	}
	for i, n := range units {
		x = nn.Dense{Units: n}.Apply(scope.At("layer_%d", i), x)
		if i < len(units)-1 {
			x = activation(x)
		}
	}
	return x
}

func under(prefix string) func(string) bool {
	return func(path string) bool { return strings.HasPrefix(path, "/"+prefix) }
}

func everything(string) bool { return true }

// The parameters that join late do so at step 40.
func early(i int) bool { return i < 40 }
func late(i int) bool  { return i >= 40 }

const examples = 256

func located() fields { return fields{"x": {uniform("places", examples*4, 1), []int{4}}} }

func classes() fields {
	f := located()
	x, y := f["x"].flat.([]float32), make([]int32, examples)
	for i := range y {
		if x[4*i] > x[4*i+1] {
			y[i]++
		}
		if x[4*i+2] > 0 {
			y[i]++
		}
	}
	f["y"] = field{y, nil}
	return f
}

func with(f fields, name string, flat any, dims ...int) fields {
	f[name] = field{flat, dims}
	return f
}

func episodes() fields {
	f := located()
	x, r := f["x"].flat.([]float32), make([]float32, examples)
	for i := range r {
		r[i] = float32(x[4*i]*x[4*i+1]) + x[4*i+2]
	}
	with(f, "r", r)
	with(f, "a", below("actions", examples, 3))
	return with(f, "old", uniform("policy", examples*3, 1), 3)
}

func chosen(logits, a *node) *node {
	return graph.ReduceSum(graph.Mul(logits, graph.OneHot(a, 3, logits.DType())), -1)
}

func entropy(logp *node) *node {
	return graph.Neg(graph.ReduceAllMean(graph.ReduceSum(graph.Mul(graph.Exp(logp), logp), 1)))
}

func (s *stage) advantage() *node {
	return graph.Add(chosen(graph.Slice(s.Field("x"), graph.AxisRange(), graph.AxisRange(0, 3)), s.Field("a")), s.Field("r"))
}

func column(x *node) *node { return graph.Squeeze(x, -1) }

func ppo(s *stage) *node {
	h := graph.Tanh(s.network("trunk", s.Field("x"), graph.Tanh, 16, 16))
	logp := graph.LogSoftmax(nn.Dense{Units: 3}.Apply(s.Scope().At("policy"), h))
	ratio := graph.Exp(graph.Sub(chosen(logp, s.Field("a")), chosen(graph.LogSoftmax(s.Field("old")), s.Field("a"))))
	a := s.advantage()
	a = graph.Sub(a, graph.ReduceAllMean(a))
	a = graph.Div(a, graph.AddScalar(graph.Sqrt(meanSquare(a)), 1e-8))
	policy := graph.Neg(graph.ReduceAllMean(graph.Min(graph.Mul(ratio, a), graph.Mul(graph.ClipScalar(ratio, 0.8, 1.2), a))))
	value := meanSquare(graph.Sub(column(nn.Dense{Units: 1}.Apply(s.Scope().At("value"), h)), s.Field("r")))
	return graph.Sub(graph.Add(policy, graph.MulScalar(value, 0.5)), graph.MulScalar(entropy(logp), 0.01))
}

func (s *stage) baseline() *node { return column(s.network("critic", s.Field("x"), graph.Tanh, 16, 1)) }

func reinforce(s *stage) *node {
	logp := graph.LogSoftmax(s.network("actor", s.Field("x"), graph.Tanh, 16, 3))
	gain := graph.StopGradient(graph.Sub(s.advantage(), s.baseline()))
	return graph.Sub(graph.Neg(graph.ReduceAllMean(graph.Mul(chosen(logp, s.Field("a")), gain))), graph.MulScalar(entropy(logp), 0.01))
}

func ddpm(s *stage) *node {
	x, noise := s.Field("x"), s.Field("noise")
	t := graph.ExpandAxes(graph.ConvertDType(s.Field("t"), x.DType()), -1)
	alpha := graph.Square(graph.Cos(graph.MulScalar(graph.DivScalar(graph.AddScalar(graph.DivScalar(t, 50), 0.008), 1.008), math.Pi/2)))
	angles := graph.Mul(t, graph.ConvertDType(graph.Const(s.Graph(), [][]float32{{1, 0.25, 0.0625, 0.015625}}), x.DType()))
	noisy := graph.Add(graph.Mul(graph.Sqrt(alpha), x), graph.Mul(graph.Sqrt(graph.OneMinus(alpha)), noise))
	silu := func(x *node) *node { return graph.Mul(x, graph.Sigmoid(x)) }
	in := graph.Concatenate([]*node{noisy, graph.Sin(angles), graph.Cos(angles)}, 1)
	return meanSquare(graph.Sub(s.network("", in, silu, 24, 24, 4), noise))
}

func leaky(x *node) *node {
	return graph.Where(graph.GreaterThan(x, graph.ScalarZero(x.Graph(), x.DType())), x, graph.MulScalar(x, 0.2))
}

func (s *stage) made() *node { return s.network("generator", s.Field("z"), graph.Tanh, 16, 4) }

func (s *stage) criticized(x *node) *node { return column(s.network("critic", x, leaky, 16, 16, 1)) }

func critic(s *stage) *node {
	x, e, made := s.Field("x"), s.Field("e"), graph.StopGradient(s.made())
	mixed := graph.Add(graph.Mul(e, x), graph.Mul(graph.OneMinus(e), made))
	slope := ops.Gradient(graph.ReduceAllSum(s.criticized(mixed)), mixed)[0]
	penalty := meanSquare(graph.AddScalar(graph.Sqrt(graph.AddScalar(graph.ReduceSum(graph.Square(slope), 1), 1e-12)), -1))
	loss := graph.Sub(graph.ReduceAllMean(s.criticized(made)), graph.ReduceAllMean(s.criticized(x)))
	return graph.Add(loss, graph.MulScalar(penalty, 10))
}

func classified(s *stage) *node {
	return crossEntropy(s.Builder, s.network("", s.Field("x"), graph.Tanh, 16, 3))
}

// sharpness is the loss at weights moved along the gradient (SAM).
func sharpness(match func(path string) bool) func(*stage) *node {
	return func(s *stage) *node {
		names := s.trained(match)
		moved := s.values(names)
		slopes := ops.Gradient(classified(s), moved...)
		sum := graph.ScalarZero(s.Graph(), s.kind)
		for _, v := range slopes {
			sum = graph.Add(sum, graph.ReduceAllSum(graph.Square(v)))
		}
		for i, v := range slopes {
			moved[i] = graph.Add(moved[i], graph.StopGradient(graph.Div(graph.MulScalar(v, 0.05), graph.Sqrt(sum))))
		}
		return s.given(names, moved, func() *node { return classified(s) })
	}
}

func curves() fields {
	const n, shots = 32, 16
	xs, c := uniform("shots", n*shots, 2), uniform("curves", n*3, 1)
	f := fields{}
	for k, name := range []string{"", "2"} {
		var x, y []float32
		for i := range n {
			for _, v := range xs[i*shots+k*shots/2:][:shots/2] {
				x = append(x, v)
				y = append(y, float32(float32(c[3*i]*v)*v)+float32(c[3*i+1]*v)+c[3*i+2])
			}
		}
		with(f, "x"+name, x, shots/2, 1)
		with(f, "y"+name, y, shots/2, 1)
	}
	return f
}

func learnedRates(s *stage) *node {
	names := s.trained(under("layer_"))
	var rates []*node
	for _, name := range names {
		rates = append(rates, s.w("rates/"+name))
	}
	failure := func(x, y *node) *node { return meanSquare(graph.Sub(s.network("", x, graph.Tanh, 12, 1), y)) }
	_, losses := ops.Scan(nil, []*node{s.Field("x"), s.Field("y"), s.Field("x2"), s.Field("y2")}, func(_, task []*node) (next, out []*node) {
		p := s.values(names)
		for range 2 {
			moved := slices.Clone(p)
			for i, g := range ops.Gradient(s.given(names, p, func() *node { return failure(task[0], task[1]) }), p...) {
				moved[i] = graph.Sub(p[i], graph.Mul(rates[i], g))
			}
			p = moved
		}
		return nil, []*node{s.given(names, p, func() *node { return failure(task[2], task[3]) })}
	})
	return graph.ReduceAllMean(losses[0])
}

func lora(s *stage) *node {
	h := s.Field("x")
	for i := range 2 {
		at := fmt.Sprintf("layer_%d", i)
		low := graph.Dot(graph.Dot(h, s.w(at+"/lora_a")).MatMul(), s.w(at+"/lora_b")).MatMul()
		h = graph.Add(denseOf(s.w, at, h), low)
		if i == 0 {
			h = graph.Tanh(h)
		}
	}
	return crossEntropy(s.Builder, h)
}

// private clips the gradient of each example and adds noise to their sum, by a term of the loss whose value is 0.
func private(match func(path string) bool) func(*stage) *node {
	return func(s *stage) *node {
		per := s.ClipByExample(0.5, []*node{s.Field("x"), s.Field("y")}, func(example []*node) *node {
			logits := s.network("", example[0], graph.Tanh, 8, 3)
			return graph.ReduceAllMean(losses.CrossEntropy(example[1], logits))
		})
		noise, at := graph.Reshape(s.Field("noise"), -1), 0
		for _, v := range s.values(s.trained(match)) {
			part := graph.Slice(noise, graph.AxisRange(at, at+v.Shape().Size()))
			at += v.Shape().Size()
			slope := graph.DivScalar(graph.ReduceAllSum(graph.Mul(v, graph.Reshape(part, v.Shape().Dimensions...))), float64(per.Shape().Size()))
			per = graph.Add(per, graph.Sub(slope, graph.StopGradient(slope)))
		}
		return per
	}
}

func distilled(s *stage) *node {
	soft := graph.StopGradient(graph.LogSoftmax(graph.DivScalar(s.network("teacher", s.Field("x"), graph.Tanh, 16, 3), 2)))
	logits := s.network("student", s.Field("x"), graph.Tanh, 6, 3)
	own := graph.LogSoftmax(graph.DivScalar(logits, 2))
	divergence := graph.ReduceAllMean(graph.ReduceSum(graph.Mul(graph.Exp(soft), graph.Sub(soft, own)), 1))
	return graph.Add(graph.MulScalar(crossEntropy(s.Builder, logits), 0.5), graph.MulScalar(divergence, 0.5*4))
}

// consistent is the loss of a student with an averaged teacher, which has the weights from before the step.
func consistent(s *stage) *node {
	taught := graph.StopGradient(graph.Softmax(s.network("teacher", s.Field("x"), graph.Tanh, 16, 3)))
	logits := s.network("student", graph.Add(s.Field("x"), s.Field("noise")), graph.Tanh, 16, 3)
	for _, name := range s.trained(under("teacher/")) {
		v := variableOf(s.Builder, s.of, s.kind, name)
		student := s.w(strings.Replace(name, "teacher", "student", 1))
		v.SetNodeValue(graph.Add(graph.MulScalar(v.NodeValue(s.Graph()), 0.95), graph.MulScalar(student, 0.05)))
	}
	return graph.Add(crossEntropy(s.Builder, logits), graph.MulScalar(meanSquare(graph.Sub(graph.Softmax(logits), taught)), 2))
}

var methods = map[string]method{
	"ppo": {data: episodes, optimizer: optim.New(3e-3, optim.Clip{GlobalNorm: 0.5}, optim.Adam{Epsilon: 1e-5}), turns: []turn{{loss: ppo}}},
	"reinforce": {data: episodes, optimizer: optim.New(5e-3, optim.Adam{}), turns: []turn{
		{trains: under("critic/"), loss: func(s *stage) *node { return meanSquare(graph.Sub(s.baseline(), s.Field("r"))) }},
		{trains: under("actor/"), when: late, loss: reinforce}}},
	"ddpm": {
		data: func() fields {
			return with(with(located(), "t", below("times", examples, 50)), "noise", uniform("noise of places", examples*4, 1.75), 4)
		},
		optimizer: optim.New(2e-3, optim.Adam{}, optim.Average{Decay: 0.95}), averaged: optim.Average{Decay: 0.95}, turns: []turn{{loss: ddpm}}},
	"wgan-gp": {
		data: func() fields {
			mixture := uniform("mixture", examples, 0.5)
			for i := range mixture {
				mixture[i] += 0.5
			}
			return with(with(located(), "z", uniform("noise of the generator", examples*2, 1), 2), "e", mixture, 1)
		},
		optimizer: optim.New(2e-3, optim.Adam{Beta1: 0.5, Beta2: 0.9}), turns: []turn{
			{trains: under("critic/"), own: "critics", loss: critic},
			{trains: under("generator/"), own: "generators", when: func(i int) bool { return i%2 == 1 },
				loss: func(s *stage) *node { return graph.Neg(graph.ReduceAllMean(s.criticized(s.made()))) }}}},
	"sam": {data: classes, optimizer: optim.New(0.05, optim.Momentum{Decay: 0.9}), turns: []turn{
		{trains: under("layer_1"), when: early, loss: sharpness(under("layer_1"))}, {when: late, loss: sharpness(everything)}}},
	"maml": {data: curves, optimizer: optim.New(5e-3, optim.Momentum{Decay: 0.9, Nesterov: true}), turns: []turn{
		{trains: under("layer_"), when: early, loss: learnedRates}, {when: late, loss: learnedRates}}},
	"lora": {data: classes, optimizer: optim.New(1e-2, optim.Adam{}, optim.WeightDecay{Rate: 0.05}), turns: []turn{
		{trains: func(path string) bool { return strings.Contains(path, "lora") }, when: early, loss: lora},
		{trains: func(path string) bool { return !strings.HasSuffix(path, "kernel") }, when: late, loss: lora}}},
	"dp-sgd": {data: func() fields { return with(classes(), "noise", uniform("noise of gradients", examples*5, 0.25), 5) },
		optimizer: optim.New(0.05, optim.Momentum{Decay: 0.9}), turns: []turn{
			{trains: under("layer_1"), when: early, loss: private(under("layer_1"))}, {when: late, loss: private(everything)}}},
	"distillation": {data: classes, optimizer: optim.New(0.05, optim.Momentum{Decay: 0.9}), turns: []turn{
		{trains: under("student/layer_1"), when: early, loss: distilled}, {trains: under("student/"), when: late, loss: distilled}}},
	"mean-teacher": {data: func() fields { return with(classes(), "noise", uniform("noise of places", examples*4, 0.25), 4) },
		optimizer: optim.New(5e-3, optim.Adam{}), turns: []turn{{trains: under("student/"), loss: consistent}}},
}

// run trains as testdata/methods.py does, and returns the losses and some elements of the weights.
func (m method) run(t *testing.T, name string, peer followed, kind dtypes.DType) (found []float64, ends map[string][]float64) {
	t.Helper()
	state, err := managed.New(strategies.Jit(plugintest.CPU(t)), managed.WithOptimizer(m.optimizer), managed.WithValues(beginnings(name, peer.Weights, kind)))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	of := func(loss func(*stage) *node) managed.Build {
		return func(b *managed.Builder) {
			b.Loss("loss", loss(&stage{b, peer.Weights, kind, weightsIn(b, peer.Weights, kind)}))
		}
	}
	step := func(s *managed.Stepper, batch data.Batch) {
		_, logs, err := s.Step(t.Context(), state, batch)
		require.NoError(t, err)
		found = append(found, must.M1(logs.Float("loss")))
	}
	var steps []*managed.Stepper
	for _, turn := range m.turns {
		var options []managed.StepOption
		if turn.trains != nil {
			options = append(options, managed.TrainOnly(turn.trains))
		}
		if turn.own != "" {
			options = append(options, managed.WithStepOptimizer(turn.own, m.optimizer))
		}
		s := managed.TrainStep(of(turn.loss), options...)
		defer func() { require.NoError(t, s.Close()) }()
		steps = append(steps, s)
	}
	var first data.Batch
	i := 0
	for batch, err := range data.Take(data.Repeat(m.data().set(kind).Batches(peer.Batch).All(), math.MaxInt), 100) {
		require.NoError(t, err)
		if i == 0 {
			first = batch
		}
		for k, turn := range m.turns {
			if turn.when == nil || turn.when(i) {
				step(steps[k], batch)
			}
		}
		i++
	}
	if m.averaged.Decay > 0 {
		test := managed.TestStep(func(b *managed.Builder) {
			m.averaged.In(b.Scope(), b.Graph(), func() { of(m.turns[0].loss)(b) })
		})
		defer func() { require.NoError(t, test.Close()) }()
		step(test, first)
	}
	ends = map[string][]float64{}
	for name := range peer.Weights {
		ends[name] = someOf(must.M1(state.Value("/" + name)))
	}
	return found, ends
}

// someOf returns at most 16 elements.
func someOf(t *tensors.Tensor) (list []float64) {
	wide, ok := tensors.MustCopyFlatData[float64], t.DType() == dtypes.Float64
	if ok {
		list = wide(t)
	} else {
		for _, v := range tensors.MustCopyFlatData[float32](t) {
			list = append(list, float64(v))
		}
	}
	stride := (len(list) + 15) / 16
	for i := range list {
		if i*stride < len(list) {
			list[i] = list[i*stride]
		}
	}
	return list[:(len(list)+stride-1)/stride]
}

// off returns the mean and maximum error of losses and weights, as testdata/methods.py defines it.
func (peer followed) off(found []float64, ends map[string][]float64) (mean, most [2]float64) {
	of := apart(found, peer.Losses)
	mean[0], most[0] = of[0], of[1]
	n := 0
	for name, list := range peer.Ends {
		for i, v := range list {
			far := math.Abs(ends[name][i] - v)
			mean[1] += far * far
			most[1] = max(most[1], far)
			n++
		}
	}
	mean[1] = math.Sqrt(mean[1] / float64(n))
	return mean, most
}

// 100 steps of ten training methods follow JAX's, with parameters that join late, steps that alternate, and an averaged
// teacher. In float64 the weights agree to 1e-9. In float32 the error is at most twice JAX's own.
// docs/maintain/numerics.md has the numbers.
func TestMethods(t *testing.T) {
	text, err := os.ReadFile("testdata/methods.json")
	require.NoError(t, err)
	var peers map[string]followed
	require.NoError(t, json.Unmarshal(text, &peers))
	require.Len(t, peers, len(methods))
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		t.Run(name, func(t *testing.T) {
			m, peer := methods[name], peers[name]
			found, ends := m.run(t, name, peer, dtypes.Float64)
			require.Len(t, found, len(peer.Losses))
			_, wide := peer.off(found, ends)
			found, ends = m.run(t, name, peer, dtypes.Float32)
			mean, _ := peer.off(found, ends)
			t.Logf("| %s | %.3g to %.3g | %.2g, %.2g | %.2g, %.2g | %.2f, %.2f | %.1g, %.1g |", name, peer.Losses[0], peer.Losses[len(peer.Losses)-1],
				peer.Float32[0], peer.Float32[1], mean[0], mean[1], mean[0]/peer.Float32[0], mean[1]/peer.Float32[1], wide[0], wide[1])
			require.LessOrEqual(t, wide[0], 1e-6, "float64: the greatest difference of the losses, which are logged in float32")
			require.LessOrEqual(t, wide[1], 1e-9, "float64: the greatest difference of the weights")
			for i, what := range []string{"losses", "weights"} {
				require.LessOrEqual(t, mean[i], 2*peer.Float32[i], "float32: the %s", what)
			}
		})
	}
}
