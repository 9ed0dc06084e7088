package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// learner is a state that changes in place: a weight that depends on all batches in their order, and metrics that its
// steps gather.
type learner struct {
	Weight, Rate checkpoint.Float
	Gathered     map[string]checkpoint.Float
}

func (l *learner) Content(context.Context) (checkpoint.Content, error) {
	return checkpoint.Content{Sections: map[string]any{"learner": l}}, nil
}

func (l *learner) Restore(_ context.Context, from *checkpoint.Checkpoint) error {
	l.Gathered = nil
	return from.Section("learner", l)
}

func (l *learner) LearningRate() (float64, error)     { return float64(l.Rate), nil }
func (l *learner) SetLearningRate(rate float64) error { l.Rate = checkpoint.Float(rate); return nil }

// example is a batch, which may know its place in its epoch.
type example struct {
	number, epoch int64
	last, known   bool
}

func (e example) InEpoch() (epoch int64, last, known bool) { return e.epoch, e.last, e.known }

// gatheringStep trains or tests, and gathers a metric over its batches.
type gatheringStep struct {
	train bool
	block int
}

func (g gatheringStep) name() string { return map[bool]string{true: "train", false: "test"}[g.train] }

func (g gatheringStep) Step(_ context.Context, l *learner, e example) (*learner, loop.Logs, error) {
	if g.train {
		l.Weight = checkpoint.Float(math.Sin(float64(l.Weight)*3 + float64(e.number)*float64(l.Rate)))
	}
	if l.Gathered == nil {
		l.Gathered = map[string]checkpoint.Float{}
	}
	l.Gathered[g.name()] += l.Weight + checkpoint.Float(e.number)
	var logs loop.Logs
	logs.Loss("loss", float64(l.Weight)*float64(e.number+1))
	logs.Metric("sum", float64(l.Gathered[g.name()]))
	return l, logs, nil
}

func (g gatheringStep) BlockSize() int { return g.block }

func (g gatheringStep) StepBlock(ctx context.Context, l *learner, batches []example) (*learner, []loop.Logs, error) {
	var all []loop.Logs
	for _, b := range batches {
		_, logs, _ := g.Step(ctx, l, b)
		all = append(all, logs)
	}
	return l, all, nil
}

func (g gatheringStep) BeginEvaluation(_ context.Context, l *learner) (func(context.Context) error, error) {
	kept, had := l.Gathered[g.name()]
	delete(l.Gathered, g.name())
	return func(context.Context) error {
		if delete(l.Gathered, g.name()); had {
			l.Gathered[g.name()] = kept
		}
		return nil
	}, nil
}

// randomProgram is one text of a program: a loop, its data, and its options.
type randomProgram struct {
	perEpoch, kind, block, evaluations int64
	until                              loop.Period
	every                              [3]loop.Period // of two evaluations and of the reset of the metrics
	patience                           int
	saves                              loop.Period
	keepBest, plateau                  bool
	thin                               int // rows that the history keeps at most, 0 for all
	keep                               loop.Schedule
}

func drawProgram(random *rand.Rand) randomProgram {
	period := func() loop.Period {
		switch random.IntN(3) {
		case 0:
			return loop.Epochs(1 + random.Int64N(2))
		case 1:
			return loop.Samples(1 + random.Int64N(9))
		}
		return loop.Steps(1 + random.Int64N(9))
	}
	p := randomProgram{perEpoch: 1 + random.Int64N(6), kind: random.Int64N(4), block: 1 + random.Int64N(5), evaluations: random.Int64N(3),
		patience: random.IntN(4), saves: period(), keepBest: random.IntN(2) == 0, plateau: random.IntN(3) == 0,
		every: [3]loop.Period{period(), period(), period()}}
	if p.until = loop.Period(loop.Epochs(1 + random.Int64N(6))); random.IntN(2) == 0 && p.kind < 2 {
		p.until = loop.Steps(1 + random.Int64N(30))
	}
	p.keep = loop.EachStep
	switch random.IntN(4) {
	case 0:
		p.keep = loop.Every(period())
	case 1:
		p.thin = 1 + random.IntN(9)
	}
	return p
}

// data is one of the kinds of sources: endless and knowing its epochs, endless without knowing when they end, one epoch
// at a time, or a plain iterator.
func (p randomProgram) data() loop.Source[example] {
	from := func(position, until int64, known bool) iter.Seq2[example, error] {
		return func(yield func(example, error) bool) {
			for i := position; i < until && yield(example{i, i / p.perEpoch, known && i%p.perEpoch == p.perEpoch-1, known}, nil); i++ {
			}
		}
	}
	switch p.kind {
	case 0:
		return loop.From(func(position int64) iter.Seq2[example, error] { return from(position, math.MaxInt64, true) })
	case 1:
		return loop.From(func(position int64) iter.Seq2[example, error] { return from(position, math.MaxInt64, false) })
	case 2:
		return loop.From(func(position int64) iter.Seq2[example, error] {
			return from(position, (position/p.perEpoch+1)*p.perEpoch, false)
		})
	}
	return loop.Data[example](from(0, p.perEpoch, false))
}

// run runs the program on a folder, as a process that is started does.
func (p randomProgram) run(t *testing.T, ctx context.Context, disk *vfs.Mem, more ...loop.Option) (loop.Result[*learner], error) {
	keep := []checkpoint.Retention{{Last: 2}}
	best := p.keepBest && p.evaluations > 0
	if best {
		keep = append(keep, checkpoint.Retention{Best: 1, Metric: "loss_a"})
	}
	folder := openMem(t, disk, checkpoint.Options{Keep: keep})
	defer func() { require.NoError(t, folder.Close()) }()
	step, test := gatheringStep{train: true, block: int(p.block)}, gatheringStep{}
	tasks := []loop.Task[*learner, example]{loop.On(loop.EachStep, step)}
	held := loop.Data[example](func(yield func(example, error) bool) {
		for i := int64(0); i < 3 && yield(example{number: i}, nil); i++ {
		}
	})
	for i := range p.evaluations {
		e := loop.Evaluate(string(rune('a'+i)), test, loop.Source[example](held))
		e.Aggregate = map[loop.Collection]loop.Aggregation{loop.Metrics: {}}
		tasks = append(tasks, e.On(loop.Every(p.every[i])))
	}
	tasks = append(tasks, loop.On(loop.Every(p.every[2]), loop.StepFunc(func(_ context.Context, l *learner, _ example) (*learner, loop.Logs, error) {
		delete(l.Gathered, "train")
		return l, loop.Logs{}, nil
	})))
	settings := []checkpoint.Options{checkpoint.Every(p.saves)}
	if best {
		settings = append(settings, checkpoint.KeepBest("loss_a"))
	}
	options := append(more, loop.Until(p.until), folder.Resume(settings...), loop.Keep(p.keep))
	if p.thin > 0 {
		options = append(options, loop.Thin(p.thin))
	}
	if p.evaluations > 0 && p.patience > 0 {
		options = append(options, callbacks.StopEarly("loss_a", callbacks.Evaluations(p.patience)))
	}
	if p.evaluations > 0 && p.plateau {
		options = append(options, callbacks.ReduceOnPlateau("loss_a", 0.5, callbacks.Evaluations(1)))
	}
	return loop.New(tasks...).Run(ctx, &learner{Rate: 1}, p.data(), options...)
}

// randomKills tries as many programs: each is run as a whole, and killed at random iterations and started again.
func randomKills(t *testing.T, programs int) (kills int) {
	errKilled := errors.New("killed")
	for seed := range programs {
		random := rand.New(rand.NewPCG(uint64(seed), 32))
		p := drawProgram(random)
		name := fmt.Sprintf("program %d: %+v", seed, p)
		whole, err := p.run(t, t.Context(), &vfs.Mem{})
		require.NoError(t, err, name)
		disk := &vfs.Mem{}
		for at := int64(0); ; {
			at += 1 + random.Int64N(8)
			if at >= whole.Elapsed.Steps {
				break
			}
			ctx, cancel := context.WithCancel(t.Context())
			after, way := disk, random.IntN(3)
			kill := loop.Watch(loop.At(loop.Steps(at)), func(context.Context, loop.Report) error {
				switch way {
				case 0: // the end of the machine
					after = disk.Crash(random.Float64(), random)
					return loop.ErrPause
				case 1:
					cancel()
					return nil
				}
				return errKilled
			})
			_, err := p.run(t, ctx, disk, kill)
			cancel()
			switch way {
			case 1:
				require.ErrorIs(t, err, context.Canceled, name)
			case 2:
				require.ErrorIs(t, err, errKilled, name)
			default:
				require.NoError(t, err, name)
			}
			disk = after
			kills++
		}
		got, err := p.run(t, t.Context(), disk)
		require.NoError(t, err, name)
		require.Equal(t, whole.Reason, got.Reason, name)
		require.Equal(t, whole.State, got.State, name)
		require.Equal(t, rows(t, whole.History), rows(t, got.History), name)
		require.Equal(t, whole.Elapsed.Steps, got.Elapsed.Steps, name)
		require.Equal(t, whole.Elapsed.Samples, got.Elapsed.Samples, name)
		require.Equal(t, whole.Elapsed.Epochs, got.Elapsed.Epochs, name)
	}
	return kills
}

// S02: random programs with evaluations, gathered metrics, best states, early stopping, plateaus, blocks and every kind
// of source are killed anywhere, and end as if they had not been: the same parameters, metrics, rows and epochs.
func TestS02_randomProgramsKilledAnywhere(t *testing.T) {
	const programs = 300
	kills := randomKills(t, programs)
	require.Greater(t, kills, programs)
	t.Logf("S02: %d random programs, %d kills: 0 differing parameters, rows or epochs", programs, kills)
}
