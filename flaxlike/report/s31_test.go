package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/flaxlike/report"
	"github.com/lazo-ml/lazo/nn"
)

// Logits that all lie in 0…1 are no probabilities: the page counts as Evaluate does.
func TestS31_logitsFrom0To1(t *testing.T) {
	set, err := data.New(data.X([]float32{0.1, 0.2, 0.3, 0.7, 0.9}, 5, 1), data.Y([]float32{1, 1, 0, 1, 0}, 5, 1))
	require.NoError(t, err)
	m := newModel(t, nn.Func(func(_ *model.Scope, x *graph.Node) *graph.Node { return x }),
		flaxlike.WithLoss("binary_crossentropy"), flaxlike.WithMetrics("accuracy"))
	figures, err := m.Evaluate(t.Context(), set)
	require.NoError(t, err)
	require.InDelta(t, 0.6, figures["accuracy"], 1e-6)
	texts, _ := written(t, report.Run{Model: m, Test: set})
	require.Contains(t, strings.Join(texts, "\n"), fmt.Sprintf("%d of 5 examples are right", 3))
}
