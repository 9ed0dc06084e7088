// Command twotower trains a recommender: a tower of users and one of items, whose dot product is the logarithm of an
// item's chance (Yi et al. 2019). The negatives of a user are the batch's other items, corrected by how often they
// occur. It prints the share of users whose last choice, if new, is among the 20 new items recommended, of 400.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/janpfeifer/must"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/nn"
	"github.com/lazo-ml/lazo/nn/losses"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

const users, items, choices, width = 300, 400, 40, 16

func tower(scope *model.Scope, ids *graph.Node, many int) *graph.Node {
	x := nn.Embedding{Vocabulary: many, Width: width}.Apply(scope.In("embedding"), ids)
	return nn.Dense{Units: width}.Apply(scope.In("dense"), x)
}

func train(b *managed.Builder) {
	user, item := tower(b.Scope().In("users"), b.Field("user"), users), tower(b.Scope().In("items"), b.Field("item"), items)
	b.Loss("loss", losses.SampledSoftmax(user, item, b.Field("odds"), b.Field("item")))
}

func score(b *managed.Builder) {
	every := graph.Iota(b.Graph(), shapes.Make(dtypes.Int32, items), 0)
	user, item := tower(b.Scope().In("users"), b.Field("user"), users), tower(b.Scope().In("items"), every, items)
	b.Output("scores", graph.DotGeneral(user, []int{1}, nil, item, []int{1}, nil))
}

// drawn are the choices of users by tastes that the model does not see, in which some items are popular.
func drawn(seed uint64) (user, item []int32) {
	random := rand.New(rand.NewPCG(seed, 0))
	var tastes [users + items][4]float64
	for i := range tastes {
		for k := range tastes[i] {
			tastes[i][k] = random.NormFloat64()
		}
	}
	for u := range users {
		var sums [items]float64
		total := 0.0
		for i := range items {
			z := -0.7 * math.Log(float64(1+i))
			for k, v := range tastes[u] {
				z += 1.2 * v * tastes[users+i][k]
			}
			total += math.Exp(z)
			sums[i] = total
		}
		for range choices {
			at, _ := slices.BinarySearch(sums[:], random.Float64()*total)
			user, item = append(user, int32(u)), append(item, int32(at))
		}
	}
	return user, item
}

func main() {
	must.M = loop.Exit
	steps := flag.Int("steps", 900, "training steps of 128 choices")
	seed := flag.Int64("seed", 0, "of the choices, the parameters and the order")
	flag.Parse()
	ctx := context.Background()
	user, item := drawn(uint64(*seed))
	var often [items]float64
	seen := map[[2]int32]bool{}
	var us, is, last []int32
	for i, u := range user {
		if (i+1)%choices == 0 {
			last = append(last, item[i])
			continue
		}
		us, is, seen[[2]int32{u, item[i]}] = append(us, u), append(is, item[i]), true
		often[item[i]]++
	}
	n := len(us)
	odds := make([]float32, n)
	for i, chosen := range is {
		odds[i] = float32(math.Log(often[chosen] / float64(n)))
	}
	set := must.M1(data.New(data.Named("user", us, n), data.Named("item", is, n), data.Named("odds", odds, n)))

	runtime := must.M1(xla.Open(ctx, xla.CPU, xla.InstallIfMissing(func(line string) { log.Print(line) })))
	defer runtime.Close()
	state := must.M1(managed.New(strategies.Jit(runtime), managed.WithOptimizer(optim.New(5e-3, optim.Adam{})), managed.WithSeed(*seed)))
	defer state.Close()
	training := loop.New(loop.On(loop.EachStep, managed.TrainStep(train)))
	must.M1(training.Run(ctx, state, set.Batches(128, data.Shuffle(uint64(*seed)), data.Dropped), loop.Until(loop.Steps(*steps)), callbacks.ProgressBar(os.Stderr)))

	every := make([]int32, users)
	for u := range every {
		every[u] = int32(u)
	}
	_, logs := must.M2(managed.TestStep(score).Step(ctx, state, data.Batch{Fields: []data.Field{data.Named("user", every, users)}, Size: users}))
	scores := must.M1(managed.Array(logs, "scores")).Flat.([]float32)
	fmt.Printf("recommended: %.3f; the most popular: %.3f\n",
		found(last, seen, func(u, i int) float64 { return float64(scores[u*items+i]) }), found(last, seen, func(_, i int) float64 { return often[i] }))
}

// found is the share of users whose last choice is new, and among the 20 best new items.
func found(last []int32, seen map[[2]int32]bool, score func(u, i int) float64) float64 {
	hits, asked := 0.0, 0.0
	for u, wanted := range last {
		if seen[[2]int32{int32(u), wanted}] {
			continue
		}
		better := 0
		for i := range items {
			if !seen[[2]int32{int32(u), int32(i)}] && score(u, i) > score(u, int(wanted)) {
				better++
			}
		}
		if asked++; better < 20 {
			hits++
		}
	}
	return hits / asked
}
