package optim_test

import (
	"context"
	"fmt"
	"log"
	"regexp"

	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// AdamW with clipping, a schedule and averaged parameters, which the test step uses.
func Example() {
	ctx := context.Background()
	average := optim.Average{Decay: 0.99}
	optimizer := optim.New(0.1,
		optim.Clip{GlobalNorm: 1},
		optim.Adam{},
		optim.WeightDecay{Rate: 0.001, Match: optim.RankFrom(1)},
		optim.ScaleBySchedule(optim.Linear(0, 1, 20).Then(20, optim.Cosine(1, 0, 280))),
		average)
	loss := func(b *managed.Builder) *graph.Node {
		w := b.Scope().VariableWithValue("w", []float32{0, 0}).NodeValue(b.Graph())
		predicted := graph.ReduceSum(graph.Mul(b.Field("x"), graph.InsertAxes(w, 0)), -1)
		return graph.ReduceAllMean(losses.SquaredError(b.Field("y"), predicted))
	}
	train := managed.TrainStep(func(b *managed.Builder) { b.Loss("mse", loss(b)) })
	test := managed.TestStep(func(b *managed.Builder) {
		average.In(b.Scope(), b.Graph(), func() { b.Loss("mse", loss(b)) })
	})

	cpu, err := xla.Open(ctx, xla.CPU)
	if err != nil {
		log.Fatal(err)
	}
	defer cpu.Close()
	state, err := managed.New(strategies.Jit(cpu), managed.WithOptimizer(optimizer))
	if err != nil {
		log.Fatal(err)
	}
	defer state.Close()
	set, err := data.New(data.X([]float32{1, 0, 0, 1, 1, 1, 1, -1}, 4, 2), data.Y([]float32{2, -1, 1, 3}, 4)) // y = 2a - b
	if err != nil {
		log.Fatal(err)
	}
	_, err = loop.New(loop.On(loop.EachStep, train)).Run(ctx, state, set.Batches(4), loop.Until(loop.Steps(300)))
	if err != nil {
		log.Fatal(err)
	}
	tested, err := loop.New(loop.On(loop.EachStep, test)).Run(ctx, state, set.Batches(4))
	if err != nil {
		log.Fatal(err)
	}
	_, mse, err := tested.History.Series("mse")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("averaged parameters are good:", mse[0] < 0.01)
	fmt.Printf("rates: %.3f %.3f %.3f\n", optimizer.RateAt(10), optimizer.RateAt(160), optimizer.RateAt(300))
	// Output:
	// averaged parameters are good: true
	// rates: 0.050 0.050 0.000
}

// A pretrained encoder stays unchanged. Kernels are trained with Muon, all else with Adam at a tenth of the rate.
func ExampleGroups() {
	optimizer := optim.New(0.02,
		optim.Frozen(optim.Under("/encoder")),
		optim.Groups(
			optim.Group{Name: "hidden", Match: optim.Matrices, Chain: optim.Chain{optim.Muon{}}},
			optim.Group{Name: "rest", Chain: optim.Chain{optim.Adam{}, optim.Scale(0.1)}}))
	fmt.Println(optimizer.FactorsAt(0))

	pattern := regexp.MustCompile(`/bias(es)?$`)
	biases := optim.MatchFunc(func(name string, _ shapes.Shape) bool { return pattern.MatchString(name) })
	fmt.Println(biases.Takes("/dense/biases", shapes.Shape{}), optim.Not(biases).Takes("/dense/biases", shapes.Shape{}), optim.Under("/encoder").Takes("/encoder/dense/weights", shapes.Shape{}))
	// Output:
	// map[hidden:1 rest:0.1] <nil>
	// true false true
}

// The rate at which the loss of a sweep falls fastest.
func ExampleSuggestRate() {
	sweep := optim.ExponentialDecay(1e-5, 1/1e-5, 100)
	var rates, losses []float64
	for i := range int64(101) { // a run of 101 steps with optim.New(1, …, optim.ScaleBySchedule(sweep)) would give the losses
		rate := sweep.At(i)
		rates, losses = append(rates, rate), append(losses, 1/(1+100*rate))
	}
	rate, err := optim.SuggestRate(rates, losses)
	fmt.Printf("%.3f %v\n", rate, err)
	// Output: 0.010 <nil>
}

// doubled is a custom transformation: it keeps the sign of the last update and doubles an update of the same sign.
type doubled struct{}

func (doubled) Name() string { return "doubled" }

func (doubled) Update(s *optim.Step) {
	for p := range s.Parameters() {
		last := s.Zeros(p, "sign")
		again := graph.GreaterThan(graph.Mul(last.NodeValue(s.Graph()), p.Update), graph.ZerosLike(p.Update))
		s.Set(last, graph.Sign(p.Update))
		p.Update = graph.Where(again, graph.MulScalar(p.Update, 2), p.Update)
	}
}

func ExampleTransformation() {
	optimizer := optim.New(0.1, doubled{}, optim.Momentum{Decay: 0.5})
	fmt.Println(optimizer.RateAt(0))
	// Output: 0.1
}
