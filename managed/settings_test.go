package managed_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"github.com/gomlx/gomlx/ml/train/optimizer"
	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/plugintest"
	"github.com/lazo-ml/lazo/loop"
	"github.com/lazo-ml/lazo/managed"
	"github.com/lazo-ml/lazo/optim"
	"github.com/lazo-ml/lazo/strategies"
	"github.com/lazo-ml/lazo/xla"
)

// setup has the settings of a run.
type setup struct {
	optimizer *optim.Optimizer
	policy    *optim.Policy
	seed      int64
	examples  int
	batch     int
	order     []data.Option
	until     int64
}

// goesOn resumes, gathers each change, and makes two steps; before is how many changes were known before the first.
func (s setup) goesOn(t *testing.T, r *xla.Runtime, f *checkpoint.Folder) (before int, told []checkpoint.Difference, rate float64) {
	t.Helper()
	options := []managed.Option{managed.WithOptimizer(s.optimizer), managed.WithSeed(s.seed)}
	if s.policy != nil {
		options = append(options, managed.WithPolicy(*s.policy))
	}
	state, err := managed.New(strategies.Jit(r), options...)
	require.NoError(t, err)
	defer func() { require.NoError(t, state.Close()) }()
	step := managed.TrainStep(regression)
	defer func() { require.NoError(t, step.Close()) }()
	set := line(t, s.examples)
	_, err = loop.New(loop.On(loop.EachStep, step)).Run(t.Context(), state, set.Batches(s.batch, s.order...),
		f.Resume(checkpoint.Options{When: loop.Never, Changed: func(d checkpoint.Difference) error { told = append(told, d); return nil }}),
		loop.Until(loop.Steps(s.until)), loop.Watch(loop.AtStart, func(context.Context, loop.Report) error { before = len(told); return nil }))
	require.NoError(t, err)
	rate, err = state.LearningRate()
	require.NoError(t, err)
	return before, told, rate
}

// Each setting of optimizer, schedule, policy, seed, batch, data and order that differs at a resume is reported, with
// the one in force.
func TestR13_changedSettingsAreTold(t *testing.T) {
	chain := func(rate, clip, decay float64, steps int) *optim.Optimizer {
		return optim.New(rate, optim.Clip{GlobalNorm: clip}, optim.Adam{}, optim.WeightDecay{Rate: decay},
			optim.ScaleBySchedule(optim.Cosine(1, 0.5, steps)), optim.Average{Decay: 0.9})
	}
	mixed := optim.MixedBFloat16()
	base := setup{optimizer: chain(0.003, 1, 0.01, 40), seed: 5, examples: 80, batch: 16, order: []data.Option{data.Shuffle(3)}}
	gomlx := base
	gomlx.optimizer = optim.GoMLX(optimizer.Adam().LearningRate(0.003).Done())
	changed := func(of setup, change func(*setup)) setup { change(&of); return of }
	content := func(examples int) string {
		batch, err := data.Peek(line(t, examples).Batches(1).All())
		require.NoError(t, err)
		return batch.Deal.Content + " (checksum of a sample)"
	}
	count, r := 0, plugintest.CPU(t)
	for _, row := range []struct {
		name       string
		saved, now setup
		want       []checkpoint.Difference
		late       bool // known only after the first step
	}{
		{"nothing", base, base, nil, false},
		{"the rate", base, changed(base, func(s *setup) { s.optimizer = chain(0.1, 1, 0.01, 40) }),
			[]checkpoint.Difference{{What: "optimizer.rate", Saved: "0.003", Now: "0.1", Kept: true}}, false},
		{"clipping, decay and schedule", base, changed(base, func(s *setup) { s.optimizer = chain(0.003, 2, 0.1, 80) }),
			[]checkpoint.Difference{
				{What: "optimizer.clip_by_global_norm", Saved: "clip_by_global_norm(1)", Now: "clip_by_global_norm(2)"},
				{What: "optimizer.schedule", Saved: "cosine 1 to 0.5 in 40", Now: "cosine 1 to 0.5 in 80"},
				{What: "optimizer.weight_decay", Saved: "WeightDecay{Rate 0.01}", Now: "WeightDecay{Rate 0.1}"}}, false},
		{"a link less", base, changed(base, func(s *setup) { s.optimizer = optim.New(0.003, optim.Adam{Beta1: 0.8}, optim.Average{Decay: 0.9}) }),
			[]checkpoint.Difference{
				{What: "optimizer", Saved: "clip_by_global_norm, adam, weight_decay, schedule, average", Now: "adam, average"},
				{What: "optimizer.adam", Saved: "Adam{}", Now: "Adam{Beta1 0.8}"}}, false},
		{"GoMLX's", gomlx, changed(gomlx, func(s *setup) { s.optimizer = optim.GoMLX(optimizer.Adam().LearningRate(0.1).Epsilon(1e-3).Done()) }),
			[]checkpoint.Difference{
				{What: "optimizer", Saved: `adam{config AdamConfig{scopeName "AdamOptimizer", beta1 0.9, beta2 0.999, epsilon 1e-07}}`,
					Now: `adam{config AdamConfig{scopeName "AdamOptimizer", beta1 0.9, beta2 0.999, epsilon 0.001}}`},
				{What: "optimizer.rate", Saved: "0.003", Now: "0.1", Kept: true}}, false},
		{"policy and seed", base, changed(base, func(s *setup) { s.policy, s.seed = &mixed, 6 }),
			[]checkpoint.Difference{{What: "policy", Saved: "none", Now: mixed.String()}, {What: "seed", Saved: "5", Now: "6", Kept: true}}, false},
		{"batch, data and order", base, changed(base, func(s *setup) { s.examples, s.batch, s.order = 96, 32, nil }),
			[]checkpoint.Difference{{What: "batch", Saved: "16", Now: "32"},
				{What: "data", Saved: "80 examples: x float32[1], y float32[1]", Now: "96 examples: x float32[1], y float32[1]"},
				{What: "data.content", Saved: content(80), Now: content(96)},
				{What: "order", Saved: "shuffled, seed 3", Now: "as they stand"}}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := folder(t, checkpoint.Options{})
			row.saved.until, row.now.until = 2, 4
			_, told, _ := row.saved.goesOn(t, r, f)
			require.Empty(t, told, "a beginning")
			before, told, rate := row.now.goesOn(t, r, f)
			require.Equal(t, row.want, told)
			if row.late {
				require.Zero(t, before)
			} else {
				require.Len(t, row.want, before, "before the run")
			}
			require.InDelta(t, 0.003, rate, 1e-9, "what was saved goes on")
			count += len(told)
		})
	}
	t.Logf("R13: %d changed settings: each told by its name, with both values and which is in force", count)
}

// Data of another kind is a difference: settings that the saved run knew and the resumed run's batches lack are
// reported as unknown. Data that never had these settings is no difference.
func TestR13_dataThatSaysNothing(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 80)
	plain := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
		return func(yield func(data.Batch, error) bool) {
			for b, err := range set.Batches(16).All() {
				if !yield(data.Batch{Fields: b.Fields}, err) {
					return
				}
			}
		}
	})
	dealt := loop.Source[data.Batch](set.Batches(16, data.Shuffle(3)))
	for _, row := range []struct {
		name       string
		saved, now loop.Source[data.Batch]
		want       []string
	}{
		{"a set, then a source", dealt, plain, []string{"data", "data.content", "order"}},
		{"a source, then a set", plain, dealt, nil},
		{"a source", plain, plain, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := folder(t, checkpoint.Options{})
			var told []string
			for i, from := range []loop.Source[data.Batch]{row.saved, row.now} {
				told = nil
				state := newState(t, r, managed.WithOptimizer(sgd()))
				tell := checkpoint.Options{Changed: func(d checkpoint.Difference) error {
					require.Equal(t, "not known", d.Now)
					told = append(told, d.What)
					return nil
				}}
				_, err := loop.New(loop.On(loop.EachStep, stepper(t, managed.TrainStep(regression)))).Run(t.Context(), state, from,
					f.Resume(tell, checkpoint.KeepBest("loss")), loop.Until(loop.Steps(2*i+2)))
				require.NoError(t, err)
			}
			require.Equal(t, row.want, told)
		})
	}
}

// Data for which a source makes a set per batch, or per few batches, are no setting: a resumed run that continues with
// them reports no difference, wherever it was saved, also if its best state is put back.
func TestS03_batchesOfManySetsAreNoDifference(t *testing.T) {
	r, set := plugintest.CPU(t), line(t, 80)
	for _, each := range []int64{1, 3} { // batches per set
		source := loop.From(func(position int64) iter.Seq2[data.Batch, error] {
			return func(yield func(data.Batch, error) bool) {
				for ; ; position += each {
					part, err := set.Gather([]int{int(position), int(position) + 1, 7, 9, 11, 13})
					if err != nil {
						yield(data.Batch{}, err)
						return
					}
					n := int64(0)
					for b, err := range part.Batches(2, data.Shuffle(uint64(position))).All() {
						if n++; n > each {
							break
						}
						if !yield(b, err) {
							return
						}
					}
				}
			}
		})
		for saved := int64(1); saved <= 8; saved++ {
			t.Run(fmt.Sprint(each, saved), func(t *testing.T) {
				f := folder(t, checkpoint.Options{})
				for _, until := range []int64{saved, 12} {
					state := newState(t, r, managed.WithOptimizer(sgd()))
					strict := checkpoint.Options{Changed: func(d checkpoint.Difference) error { return fmt.Errorf("changed: %s", d) }}
					_, err := loop.New(loop.On(loop.EachStep, stepper(t, managed.TrainStep(regression)))).Run(t.Context(), state, source,
						f.Resume(strict, checkpoint.KeepBest("loss")), loop.Until(loop.Steps(until)))
					require.NoError(t, err)
				}
			})
		}
	}
}
