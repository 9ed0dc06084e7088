package strategytest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla/cost"
)

// logged is the number of bytes that a step exchanges besides its gradients: the loss, and the statistics of a
// normalization over all examples, with their gradients.
const logged = 192

// exchangedMore are the models whose data-parallel step exchanges more than its gradients, and why: the factor of an
// all-reduce's bytes over those of the parameters.
var exchangedMore = map[string]struct {
	factor float64
	why    string
}{
	"tied embeddings": {2, "the table is used twice, and the gradients of both uses are exchanged before they are added"},
}

// exchanges returns the communication of a model's data-parallel training step, and the bytes of its parameters.
func (m layerModel) exchanges(t *testing.T, on strategies.Strategy, devices int) (all []cost.Exchange, parameters float64, err error) {
	state, err := managed.New(on, managed.WithOptimizer(optim.GoMLX(optimizer.Adam().Done())))
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(m.build)
	defer func() { require.NoError(t, step.Close()) }()
	p, err := step.Program(t.Context(), state, m.batch(t, 64))
	require.NoError(t, err)
	text, err := p.Optimized()
	if err != nil {
		return nil, 0, err
	}
	counts, err := cost.Count(text, []cost.Axis{{Name: strategies.DataAxis, Size: devices}})
	require.NoError(t, err)
	return counts.Exchanged, 4 * float64(state.Parameters()), nil
}

// requireGradients wants the gradients exchanged, and nothing else: 4 bytes a parameter, times what a machine pads them
// by.
func (m layerModel) requireGradients(t *testing.T, all []cost.Exchange, parameters, padded float64) (row string) {
	row = fmt.Sprintf("%-30s %7.0f", m.name, parameters)
	factor := cmp.Or(exchangedMore[m.name].factor, 1)
	reduced := 0.0
	for _, e := range all {
		row += fmt.Sprintf("  %s %.0f (%.2f)", e.Kind, e.Bytes, e.Bytes/parameters)
		if e.Kind == "all-reduce" || e.Kind == "reduce-scatter" {
			reduced += e.Bytes
		} else {
			t.Errorf("%s: an %s of %.0f bytes: the examples are to stay divided", m.name, e.Kind, e.Bytes)
		}
	}
	assert.LessOrEqual(t, reduced, padded*factor*parameters+logged, m.name)
	assert.GreaterOrEqual(t, reduced, (factor-0.1)*parameters, "%s: expected the gradients, and for a row of exchangedMore more", m.name)
	return row
}

// TestDataParallel_exchanges counts what the devices exchange in a data-parallel step of each layer: gradients alone,
// so that no device computes with all examples.
func TestDataParallel_exchanges(t *testing.T) {
	models := layerModels()
	for name := range exchangedMore {
		require.True(t, slices.ContainsFunc(models, func(m layerModel) bool { return m.name == name }), name)
	}
	for _, n := range []int{2, 4} {
		on, err := strategies.DataParallel(plugintest.Devices(t, n), strategies.Parallel{})
		require.NoError(t, err)
		var table strings.Builder
		for _, m := range models {
			if !exchangesCounted(m.name, n) {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d", m.name, n), func(t *testing.T) {
				all, parameters, err := m.exchanges(t, on, n)
				require.NoError(t, err)
				fmt.Fprintln(&table, m.requireGradients(t, all, parameters, 1))
			})
		}
		t.Logf("bytes exchanged on each of %d devices, and over those of the parameters:\n%s", n, table.String())
	}
}
