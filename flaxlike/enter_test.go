package flaxlike_test

import (
	"fmt"
	"iter"
	"strconv"
	"testing"

	"github.com/janpfeifer/must"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/data/tables"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/nn"
)

// tabled is sorted as a table of texts: the numbers in the columns a, b and c, and the name of the class in kind.
func tabled(t testing.TB, n int, names ...string) *data.Set {
	t.Helper()
	set := sorted(t, n)
	x, y := set.Fields()[0].Array.Flat.([]float32), set.Fields()[1].Array.Flat.([]int32)
	columns := make([][]string, 4)
	for i := range n {
		for k := range 3 {
			columns[k] = append(columns[k], strconv.FormatFloat(float64(x[3*i+k]), 'f', -1, 32))
		}
		columns[3] = append(columns[3], names[y[i]])
	}
	return must.M1(data.New(data.Named("a", columns[0], n), data.Named("b", columns[1], n), data.Named("c", columns[2], n), data.Named("kind", columns[3], n)))
}

// numbered prepares tabled: x is what sorted has, and the classes are in a field, unless that is "".
func numbered(t testing.TB, field string, names ...string) *tables.Preparation {
	t.Helper()
	rules := []tables.Columns{tables.Numbers{Columns: []string{"a", "b", "c"}}}
	if field != "" {
		rules = append(rules, tables.Labels{Columns: []string{"kind"}, Field: field, Classes: names})
	} else {
		names = []string{"", "", ""}
	}
	return must.M1(tables.Fit(tabled(t, 3, names...), rules...))
}

// A model with a preparation learns from tables the same bits as one without from what the preparation makes, through
// every method: it prepares a set once, and nothing twice.
func TestWithPreparation_takesTables(t *testing.T) {
	names := []string{"a", "b", "c"}
	table, p, ctx := tabled(t, 40, names...), numbered(t, "y", names...), t.Context()
	set := must.M1(table.Map(p.Apply))
	made := func(options ...flaxlike.Option) *flaxlike.Model {
		return newModel(t, nn.Sequential{nn.Dense{Units: 4}, nn.Dense{Units: 3}}, append(options, flaxlike.WithLoss(sparse), flaxlike.WithMetrics("accuracy"), flaxlike.WithBatchSize(16))...)
	}
	with, without := made(flaxlike.WithPreparation(p)), made()
	arrays := func(p flaxlike.Prediction, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return output(t, p), nil
	}
	same := func(what string, f func(m *flaxlike.Model, set *data.Set) (any, error)) {
		t.Helper()
		got, err := f(with, table)
		require.NoError(t, err, what)
		want, err := f(without, set)
		require.NoError(t, err, what)
		require.Equal(t, fmt.Sprint(want), fmt.Sprint(got), what)
	}
	batch := func(set *data.Set) data.Batch { return first(t, set, 16) }
	rows := func(h *loop.History, err error) (any, error) {
		var all []string
		for _, logs := range h.Rows() {
			all = append(all, fmt.Sprint(logs))
		}
		return all, err
	}
	plain := func(set *data.Set) loop.Data[data.Batch] {
		return loop.Data[data.Batch](func(yield func(data.Batch, error) bool) {
			for range 4 {
				for b, err := range set.Batches(16, data.Kept).All() {
					if !yield(b, err) {
						return
					}
				}
			}
		})
	}
	same("Init", func(m *flaxlike.Model, set *data.Set) (any, error) { return nil, m.Init(ctx, batch(set)) })
	same("TrainStep", func(m *flaxlike.Model, set *data.Set) (any, error) {
		_, logs, err := m.TrainStep(ctx, batch(set))
		return logs, err
	})
	same("TestStep", func(m *flaxlike.Model, set *data.Set) (any, error) {
		_, logs, err := m.TestStep(ctx, batch(set))
		return logs, err
	})
	same("Fit", func(m *flaxlike.Model, set *data.Set) (any, error) {
		return rows(m.Fit(ctx, set, quiet(flaxlike.Fit{Epochs: 2, Validation: set, Validations: map[string]*data.Set{"other": set}, OnDevice: true})))
	})
	require.Equal(t, []string{"x float32 [3]", "y int32 []"}, with.Describe().Card.Fields, "the set was prepared as a whole")
	same("Fit of a part", func(m *flaxlike.Model, set *data.Set) (any, error) {
		return rows(m.Fit(ctx, set, quiet(flaxlike.Fit{ValidationSplit: 0.2, OverfitBatches: 1})))
	})
	same("Fit of a mapped set", func(m *flaxlike.Model, set *data.Set) (any, error) {
		mapped, err := set.MapBatches(func(b data.Batch) (data.Batch, error) { return b, nil })
		require.NoError(t, err)
		return rows(m.Fit(ctx, mapped, quiet(flaxlike.Fit{Validation: mapped, Augment: []func(data.Batch) (data.Batch, error){func(b data.Batch) (data.Batch, error) {
			_, err := b.Field("x")
			return b, err
		}}})))
	})
	same("FitBatches", func(m *flaxlike.Model, set *data.Set) (any, error) {
		return rows(m.FitBatches(ctx, set.Batches(8), quiet(flaxlike.Fit{Epochs: 2, StepsPerEpoch: 5, ValidationBatches: set.Batches(16)})))
	})
	same("FitBatches of an iterator", func(m *flaxlike.Model, set *data.Set) (any, error) {
		return rows(m.FitBatches(ctx, plain(set), quiet(flaxlike.Fit{Epochs: 2, StepsPerEpoch: 3})))
	})
	same("Evaluate", func(m *flaxlike.Model, set *data.Set) (any, error) { return m.Evaluate(ctx, set) })
	same("EvaluateBatches", func(m *flaxlike.Model, set *data.Set) (any, error) {
		return m.EvaluateBatches(ctx, set.Batches(16))
	})
	same("Predict", func(m *flaxlike.Model, set *data.Set) (any, error) { return arrays(m.Predict(ctx, set)) })
	same("PredictBatch", func(m *flaxlike.Model, set *data.Set) (any, error) { return arrays(m.PredictBatch(ctx, batch(set))) })
	same("PredictBatches", func(m *flaxlike.Model, set *data.Set) (any, error) {
		var all []any
		for p, err := range m.PredictBatches(ctx, set.Batches(16)) {
			if err != nil {
				return nil, err
			}
			all = append(all, output(t, p))
		}
		require.Len(t, all, 3)
		return all, nil
	})
	same("Answer", func(m *flaxlike.Model, set *data.Set) (any, error) {
		p, err := m.Answer(ctx, batch(set))
		delete(p, "preds_class") // the one has names
		return p, err
	})
	same("Calibrate", func(m *flaxlike.Model, set *data.Set) (any, error) { return m.Calibrate(ctx, set) })
	same("PredictOne", func(m *flaxlike.Model, _ *data.Set) (any, error) {
		if m == with {
			return arrays(m.PredictOne(ctx, data.Named("c", []string{"3"}), data.Named("a", []float32{1}), data.Named("b", []int32{2})))
		}
		return arrays(m.PredictOne(ctx, data.Named("x", []float32{1, 2, 3}, 3)))
	})
	same("PredictRows", func(m *flaxlike.Model, _ *data.Set) (any, error) {
		if m == with {
			return arrays(m.PredictRows(ctx, map[string]any{"a": 1, "b": "2", "c": 3.0, "kind": "a"}))
		}
		return arrays(m.PredictOne(ctx, data.Named("x", []float32{1, 2, 3}, 3)))
	})
	require.Equal(t, p, with.Preparation())
}

// Each method refuses what is prepared already, and says what it takes.
func TestWithPreparation_refusesAPreparedSet(t *testing.T) {
	names := []string{"a", "b", "c"}
	m := newModel(t, nn.Dense{Units: 3}, flaxlike.WithLoss(sparse), flaxlike.WithPreparation(numbered(t, "y", names...)))
	set, table, ctx := sorted(t, 8), tabled(t, 8, names...), t.Context()
	must.M1(m.Predict(ctx, table))
	const inputs, labels = "the model has a preparation: give it the table as it was read, with the columns a, b, c", ", kind"
	fail := func(what, want string, err error) {
		t.Helper()
		require.ErrorContains(t, err, want, what)
		require.NotContains(t, err.Error(), "tables: ", "the name of another package: %s", what)
	}
	batches := func(yield func(data.Batch, error) bool) { set.Batches(8).All()(yield) }
	_, err := m.Fit(ctx, set, quiet(flaxlike.Fit{}))
	fail("Fit", inputs+labels, err)
	_, err = m.FitBatches(ctx, loop.Data[data.Batch](batches), quiet(flaxlike.Fit{StepsPerEpoch: 1}))
	fail("FitBatches", inputs+labels, err)
	_, err = m.Evaluate(ctx, set)
	fail("Evaluate", inputs+labels, err)
	_, err = m.EvaluateBatches(ctx, set.Batches(8))
	fail("EvaluateBatches", inputs+labels, err)
	_, _, err = m.TrainStep(ctx, first(t, set, 8))
	fail("TrainStep", inputs+labels, err)
	_, err = m.Calibrate(ctx, set)
	fail("Calibrate", inputs+labels, err)
	_, err = m.Predict(ctx, set)
	fail("Predict", inputs, err)
	_, err = m.PredictBatch(ctx, first(t, set, 8))
	fail("PredictBatch", inputs, err)
	next, stop := iter.Pull2(m.PredictBatches(ctx, set.Batches(8)))
	_, err, _ = next()
	stop()
	fail("PredictBatches", inputs, err)
	fail("Init", inputs, m.Init(ctx, first(t, set, 8)))
	_, err = m.PredictRows(ctx, map[string]any{"a": 1, "b": 2})
	require.EqualError(t, err, `flaxlike: predict rows: preparation: table: row 1: there is no column "c", fitted as a number: give nil (null in JSON) if the value is missing`)
	_, err = m.Predict(ctx, must.M1(table.Map(data.Drop("a"))))
	fail("a column", inputs, err)
	require.ErrorContains(t, err, `the table has no column "a"`)
	for _, p := range []*tables.Preparation{nil, {}} {
		_, err = flaxlike.New(ctx, nn.Dense{Units: 3}, flaxlike.WithStrategy(jit(t)), flaxlike.WithPreparation(p))
		require.ErrorContains(t, err, "WithPreparation: it is nil or the zero value: make one with tables.Fit")
	}
}

// Numbers that stand in a table as numbers, also on the device, are prepared as texts are.
func TestWithPreparation_ofNumbersOnTheDevice(t *testing.T) {
	p := must.M1(tables.Fit(must.M1(data.New(data.Named("a", []float32{1, 2, 3}, 3))), tables.Numbers{Scale: tables.Standard}))
	table := must.M1(data.New(data.Named("a", []float32{1, 2, 3, 4}, 4)))
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithPreparation(p))
	want := must.M1(m.Predict(t.Context(), table))
	for b, err := range m.PredictBatches(t.Context(), data.OnDevice(table).Batches(4)) {
		require.NoError(t, err)
		require.Equal(t, output(t, want).Flat, output(t, b).Flat)
	}
}

// Values of the rows before would differ between a set, its batches and requests that a server joins.
func TestWithPreparation_refusesTheRowsBefore(t *testing.T) {
	table := must.M1(data.New(data.Named("a", []string{"1", "", "3"}, 3)))
	p := must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}, Fill: tables.FillForward, Leading: tables.FillMean}))
	_, err := flaxlike.New(t.Context(), nn.Dense{Units: 1}, flaxlike.WithStrategy(jit(t)), flaxlike.WithPreparation(p))
	require.ErrorContains(t, err, `WithPreparation: ["a"] is filled from the rows before`)
	windows := must.M1(data.New(data.Named("a", []string{"1", "", "3", ""}, 2, 2)))
	p = must.M1(tables.Fit(windows, tables.Numbers{Columns: []string{"a"}, Fill: tables.FillForward}))
	must.M1(newModel(t, nn.Sequential{nn.Flatten{}, nn.Dense{Units: 1}}, flaxlike.WithPreparation(p)).Predict(t.Context(), windows))
}

// A file with a function, which Open cannot read by itself, has its preparation too.
func TestOpen_anotherPreparationWithAFunction(t *testing.T) {
	fitted := func(values ...string) *tables.Preparation {
		table := must.M1(data.New(data.Named("a", values, len(values))))
		return must.M1(tables.Fit(table, tables.Numbers{Columns: []string{"a"}, Scale: tables.Standard}, tables.Function{Name: "length", Columns: []string{"a"},
			Of: func(row []string) ([]float32, error) { return []float32{float32(len(row[0]))}, nil }}))
	}
	m := newModel(t, nn.Dense{Units: 1}, flaxlike.WithLoss("mse"), flaxlike.WithPreparation(fitted("1", "2", "3")))
	row := map[string]any{"a": "2"}
	must.M1(m.PredictRows(t.Context(), row))
	path := t.TempDir() + "/model.safetensors"
	must.M(m.Save(path))
	_, err := flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)), flaxlike.WithPreparation(fitted("1", "2", "30")))
	require.ErrorContains(t, err, "WithPreparation: the file has another preparation")
	same := must.M1(flaxlike.Open(t.Context(), path, flaxlike.WithStrategy(jit(t)), flaxlike.WithPreparation(fitted("1", "2", "3"))))
	defer same.Close()
	require.Equal(t, output(t, must.M1(m.PredictRows(t.Context(), row))), output(t, must.M1(same.PredictRows(t.Context(), row))))
}
