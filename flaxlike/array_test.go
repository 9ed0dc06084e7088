package flaxlike_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
)

// An infinite number or a NaN in an output of classes is an error of what is made of it.
func TestProbabilities_ofFiniteNumbers(t *testing.T) {
	asked := func(then func(*graph.Node) *graph.Node) func(*graph.Node) *graph.Node {
		return func(x *graph.Node) *graph.Node {
			_ = graph.IsFinite(x) // so that infinite inputs are taken
			return then(x)
		}
	}
	same := func(x *graph.Node) *graph.Node { return graph.Identity(x) }
	m := newModel(t, asIs(map[string]func(*graph.Node) *graph.Node{"one": asked(same), "several": asked(same), "soft": asked(func(x *graph.Node) *graph.Node { return graph.Softmax(x) })},
		"one", "several", "soft"), flaxlike.WithLoss(flaxlike.Loss{Name: sparse, Output: "one"}, flaxlike.Loss{Name: "binary_crossentropy", Output: "several"}))
	inf := math.Inf(1)
	for _, c := range []struct {
		row  [2]float64
		has  string
		soft string
	}{{[2]float64{inf, -inf}, "+Inf", "a NaN"}, {[2]float64{0, -inf}, "-Inf", ""}, {[2]float64{inf, 0}, "+Inf", "a NaN"}, {[2]float64{math.NaN(), 0}, "a NaN", "a NaN"}, {[2]float64{1, 0}, "", ""}} {
		field := func(name string) data.Field {
			return data.Named(name, []float32{1, 2, float32(c.row[0]), float32(c.row[1])}, 2, 2)
		}
		p := must.M1(m.Predict(t.Context(), must.M1(data.New(field("one"), field("several"), field("soft")))))
		for output, has := range map[string]string{"one": c.has, "several": c.has, "soft": c.soft} {
			_, classes := p.Classes(output)
			_, probabilities := p.Probabilities(output)
			_, labels := p.Labels(output)
			for _, err := range []error{classes, probabilities, labels} {
				if has == "" {
					require.NoError(t, err, "%s %v", output, c.row)
				} else {
					require.ErrorContains(t, err, fmt.Sprintf("output %q: example 1 has %s, which belongs to no class", output, has))
				}
			}
			require.Len(t, must.M1(p.Output(output)).Flat, 4, "the numbers themselves")
		}
	}
}

func TestProbabilities_notKnown(t *testing.T) {
	own := func(labels, output *graph.Node) *graph.Node { return graph.Square(graph.Sub(output, labels)) }
	fields := func(names ...string) *data.Set {
		var list []data.Field
		for _, name := range names {
			list = append(list, data.Named(name, []float32{1, 2}, 2, 1))
		}
		set, err := data.New(list...)
		require.NoError(t, err)
		return set
	}
	for want, options := range map[string][]flaxlike.Option{
		`flaxlike: probabilities: output "x": no loss by name says whether its numbers are logits`: {flaxlike.WithLoss(flaxlike.Loss{Func: own})},
		`flaxlike: probabilities: output "x": its loss is for numbers, not for classes`:            {flaxlike.WithLoss("mse")},
		`flaxlike: probabilities: output "x": no loss by name says`:                                {flaxlike.WithLoss("hinge")},
	} {
		m := newModel(t, asIs(nil, "x"), options...)
		_, err := probabilitiesOf(t, m, fields("x"))
		require.ErrorContains(t, err, want)
	}
}
