package metrics_test

import (
	"context"
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/lazo-ml/lazo/metrics"
	"github.com/lazo-ml/lazo/xla"
)

// The accuracy over two batches, the second of which is padded. The accumulators are kept as tensors here.
func Example() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()

	accuracy := metrics.Accuracy()
	update := graph.MustNewExec(runtime, func(total, weight, mask, labels, scores *graph.Node) (newTotal, newWeight, value *graph.Node) {
		acc := accuracy.Update([]*graph.Node{total, weight}, mask, labels, scores)
		return acc[0], acc[1], accuracy.Compute(acc)[0].Node
	})
	total, weight := tensors.FromValue(0.0), tensors.FromValue(0.0)
	var value *tensors.Tensor
	for _, b := range []struct {
		mask   []bool
		labels []int32
		scores [][]float32
	}{
		{[]bool{true, true}, []int32{0, 1}, [][]float32{{0.9, 0.1}, {0.2, 0.8}}},
		{[]bool{true, false}, []int32{1, 0}, [][]float32{{0.7, 0.3}, {0, 0}}},
	} {
		total, weight, value, err = update.Call3(total, weight, b.mask, b.labels, b.scores)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%.3f\n", value.Value())
	}
	// Output:
	// 1.000
	// 0.667
}

// Several metrics over the outputs of a step.
func ExampleCollection() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()

	collection := metrics.Collection{
		{Name: "loss", Metric: metrics.Mean(), Inputs: []string{"losses"}, Weights: "mask"},
		{Name: "largest loss", Metric: metrics.Max(), Inputs: []string{"losses"}, Weights: "mask"},
		{Name: "scores", Metric: metrics.ClassScores(2, metrics.Binary), Inputs: []string{"labels", "predictions"}, Weights: "mask"},
	}
	var names []string
	step := graph.MustNewExec(runtime, func(g *graph.Graph) []*graph.Node {
		outputs := map[string]*graph.Node{
			"losses":      graph.Const(g, []float32{0.25, 0.75, 1, 99}),
			"labels":      graph.Const(g, []int32{1, 1, 0, 1}),
			"predictions": metrics.Threshold(graph.Const(g, []float32{0.9, 0.4, 0.2, 0.7}), 0.5),
			"mask":        graph.Const(g, []bool{true, true, true, false}),
		}
		acc := collection.Update(collection.Initial(g), outputs)
		var figures []*graph.Node
		for _, v := range collection.Compute(acc) {
			names, figures = append(names, v.Name), append(figures, v.Node)
		}
		return figures
	})
	figures, err := step.Call()
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, f := range figures {
		fmt.Printf("%s: %.3f\n", names[i], f.Value())
	}
	// Output:
	// loss: 0.667
	// largest loss: 1.000
	// scores/precision: 1.000
	// scores/recall: 0.500
	// scores/f1: 0.667
	// scores/specificity: 1.000
}

// geometricMean is a custom metric: the geometric mean of its input.
type geometricMean struct{}

func (geometricMean) Accumulators() []metrics.Accumulator {
	scalar := shapes.Make(dtypes.Float64)
	return []metrics.Accumulator{{Name: "logs", Shape: scalar}, {Name: "count", Shape: scalar}}
}

func (m geometricMean) Update(acc []*graph.Node, weights *graph.Node, inputs ...*graph.Node) []*graph.Node {
	logs := graph.ConvertDType(graph.Log(inputs[0]), dtypes.Float64)
	if weights == nil {
		weights = graph.OnesLike(logs)
	}
	weights = graph.ConvertDType(weights, dtypes.Float64)
	logs = graph.Where(graph.IsZero(weights), graph.ZerosLike(logs), graph.Mul(weights, logs))
	return m.Merge(acc, []*graph.Node{graph.ReduceAllSum(logs), graph.ReduceAllSum(weights)})
}

func (geometricMean) Merge(a, b []*graph.Node) []*graph.Node {
	return []*graph.Node{graph.Add(a[0], b[0]), graph.Add(a[1], b[1])}
}

func (geometricMean) Compute(acc []*graph.Node) []metrics.Value {
	return []metrics.Value{{Node: graph.Exp(graph.Div(acc[0], acc[1]))}}
}

func ExampleMetric() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()

	var m metrics.Metric = geometricMean{}
	mean, err := graph.CallOnce(runtime, func(values *graph.Node) *graph.Node {
		acc := m.Update(metrics.Initial(m, values.Graph()), nil, values)
		return m.Compute(acc)[0].Node
	}, []float32{1, 10, 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", mean.Value())
	// Output: 10.000
}

// A custom mean needs no type: here the share of predictions with an error below a half.
func ExampleMapInputs() {
	runtime, err := xla.Open(context.Background(), xla.Go)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runtime.Close()

	near := metrics.MapInputs(metrics.Mean(), func(in []*graph.Node) []*graph.Node {
		off := graph.Abs(graph.Sub(in[0], in[1]))
		return []*graph.Node{graph.LessThan(off, graph.Scalar(off.Graph(), off.DType(), 0.5))}
	})
	share, err := graph.CallOnce(runtime, func(targets, predictions *graph.Node) *graph.Node {
		acc := near.Update(metrics.Initial(near, targets.Graph()), nil, targets, predictions)
		return near.Compute(acc)[0].Node
	}, []float32{1, 2, 3, 4}, []float32{1.1, 2.9, 3, 4.2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", share.Value())
	// Output: 0.75
}
