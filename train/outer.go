package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Outer is training in inner loops of some steps, with evaluations and actions at their borders. It is one [loop.Loop] over
// all steps: options such as [callbacks.ProgressBar] and [loop.WatchEntry] work as they do there, entries of an
// evaluation stand in the history with its name behind, as loss_test, and a [loop.BlockStepper] makes blocks that end
// at the borders.
//
//	outer := train.Outer[State, Batch]{
//		Train:      trainStep,
//		Data:       func(ctx context.Context, from loop.Elapsed) (loop.Data[Batch], error) { … },
//		TotalSteps: 1000,
//		LoopSteps:  100,
//		Evals:      []train.EvalSpec[State, Batch]{{Name: "test", Step: testStep, Data: testData, Interval: 2}},
//		End:        []train.Action[State]{{Name: "print", Do: print}},
//	}
//	result, err := outer.Run(ctx, state)
//
// At the border of an inner loop come the evaluations in their order, then the end actions in theirs, then the callbacks
// of the options. Jaxloop's end actions come before the evaluations; ours see what these gave, because the best checkpoint
// and the end of the training are mostly a matter of the test loss.
//
// Inner loops are counted from the first step of the training, so that a run that is resumed has the borders of one that
// was not: 55 of 100 steps done, LoopSteps 10, gives inner loops of 5, 10, 10, 10 and 10 steps, with the numbers 6 to 10.
// The last one ends with the run; if it has no step, it is none: nothing is done at its end. (Jaxloop does its end actions
// once more when the data is used up.) A run that is cancelled or fails has no last border.
//
// In Jaxloop's words:
//
//	Step, Step.run                  loop.Stepper, loop.StepFunc
//	train_loop, TrainLoop           Outer.Train, Tasks, Begin and End
//	train_dataset                   Outer.Data
//	train_total_steps               Outer.TotalSteps, AllData
//	train_loop_steps                Outer.LoopSteps
//	EvalLoop, PipelineLoop          EvalSpec.Step, EvalSpec.End
//	EvalSpec.dataset, num_steps     EvalSpec.Data, Steps
//	eval_loop_interval              EvalSpec.Interval
//	should_eval_fn, EvalContext     EvalSpec.When, EvalContext
//	Action of a loop                Action, in Begin or End; its unit is inner loops
//	Action of a step                loop.Watch(loop.Every(loop.Steps(n)), …)
//	SummaryAction                   Action over Border.Outputs; loop.CSV, loop.JSONL for each step
//	CheckpointAction                SaveTo
//	StepNumberAction                Action over Border.Elapsed.Steps
//	outputs, update_outputs         OuterResult.Last, Inner.Outputs, Inner.History, Aggregate
//	StatLoop, jaxloop/steps_per_sec Stats, stats.steps_per_sec
//	loop_count                      Inner.Number, OuterResult.Loops
//	jaxloop/stop_loop               loop.ErrStop from an action, an evaluation or a step
//	StopTrainingError               OuterResult.Reason and Stop
//	AsyncActionContext              Border.Background
//	CheckpointSpec                  Outer.Checkpoints and Dir, Continuous
//	continuous evaluation           Continuous
type Outer[S, B any] struct {
	// Train makes one step.
	Train loop.Stepper[S, B]
	// Data opens the data of the run, once: all inner loops go on in it. From is what is done already; the first batch is to be
	// the next one.
	Data func(ctx context.Context, from loop.Elapsed) (loop.Data[B], error)
	// TotalSteps ends the training, steps of earlier runs counted. With [AllData] the data does. Zero says nothing of it, and is
	// an error unless [loop.Until] is among the options: over data without an end, the training had none.
	TotalSteps loop.Steps
	// LoopSteps is the length of an inner loop. Zero: all of the run is one inner loop.
	LoopSteps loop.Steps
	// Reset clears what the state sums up over an inner loop, as mean metrics do. It runs after the last step of an inner loop has
	// logged, within each evaluation before its first batch, and after each, so that the next inner loop starts clean also where
	// the state changes in place: as [Loop.Reset] does.
	Reset func(ctx context.Context, state S) (S, error)
	// Tasks are further tasks of the loop, behind Train in their turns.
	Tasks []loop.Task[S, B]
	Evals []EvalSpec[S, B]
	// Begin actions come before the first step of an inner loop, when its batch is there. One that asks to stop ends the run
	// after that step.
	Begin, End []Action[S]
	// Aggregate makes the outputs of an inner loop from what its steps logged.
	Aggregate loop.Aggregations
	// Checkpoints, if they are given, are where the newest state is taken from before the training, if there is one. To save
	// there is an action: [SaveTo].
	Checkpoints Checkpoints[S]
	// Dir, if it is given, is where [StoppedFile] tells a [Continuous] evaluation that the training is over.
	Dir string
}

// AllData as [Outer.TotalSteps] trains until the data ends, or somebody asks to stop.
const AllData loop.Steps = -1

// OuterResult is how an outer loop ended. It is valid also beside an error.
type OuterResult[S any] struct {
	// Result has the history of all steps of this run.
	loop.Result[S]
	// Loops is how many inner loops are done, earlier runs included; one that the end of the run cut short counts.
	Loops InnerLoops
	// Last is the last inner loop of this run that came to its end, evaluations included.
	Last Inner
	// Evaluations has the newest of each name.
	Evaluations map[string]Inner
}

// Run trains as [loop.Loop.Run] does, from the newest of the Checkpoints, else from [loop.From] if that is among the options,
// else from nothing.
func (o Outer[S, B]) Run(ctx context.Context, state S, options ...loop.Option) (OuterResult[S], error) {
	r := &outerRun[S, B]{Outer: o, evals: newEvaluations(), logged: map[string]bool{}, start: time.Now()}
	state, options, err := r.prepare(ctx, state, options)
	if err != nil {
		result := OuterResult[S]{Result: failed(state, r.from)}
		if ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) {
			result.Reason = loop.Cancelled
		}
		return result, fmt.Errorf("train: outer loop: %w", err)
	}
	result, err := loop.New(r.tasks()...).Run(ctx, state, r.data(ctx), append(r.watchers(), options...)...)
	if err == nil && o.Dir != "" {
		if err = writeStopped(o.Dir, ending(result)); err != nil {
			result.Reason, err = loop.Failed, fmt.Errorf("train: outer loop: at the end: %w", err)
		}
	}
	return OuterResult[S]{result, r.loops(result.Elapsed), r.last, r.evals.results}, err
}

// prepare finds out where the run begins, and gives the state there and the options that say so.
func (r *outerRun[S, B]) prepare(ctx context.Context, state S, options []loop.Option) (S, []loop.Option, error) {
	plan, err := loop.New[S, B]().Plan(options...)
	if err != nil {
		return state, nil, err
	}
	r.from = plan.From
	if err := r.check(plan.Until); err != nil {
		return state, nil, err
	}
	if r.TotalSteps > 0 {
		options = append(options[:len(options):len(options)], loop.Until(r.TotalSteps))
	}
	if r.Dir != "" {
		if err := removeStopped(r.Dir); err != nil {
			return state, nil, err
		}
	}
	if r.Checkpoints != nil {
		found := false
		err := shielded(func() (err error) {
			state, found, err = r.restore(ctx, state)
			return err
		})
		if err != nil {
			return state, nil, err
		}
		if found {
			options = append(options[:len(options):len(options)], loop.From(r.from, nil))
		}
	}
	r.opened = r.from
	return state, options, nil
}

// restore takes the newest checkpoint, if there is one.
func (r *outerRun[S, B]) restore(ctx context.Context, state S) (_ S, found bool, err error) {
	steps, err := r.Checkpoints.Steps(ctx)
	if err != nil {
		return state, false, fmt.Errorf("list checkpoints: %w", err)
	}
	if len(steps) == 0 {
		return state, false, nil
	}
	step := slices.Max(steps)
	if r.from.Steps > 0 {
		return state, false, fmt.Errorf("the run is to begin from step %d (loop.From), but there is a checkpoint of step %d: want one of the two", r.from.Steps, step)
	}
	state, r.from, err = restore(ctx, r.Checkpoints, state, step)
	return state, err == nil, err
}

func (r *outerRun[S, B]) check(until loop.Period) error {
	var errs []error
	if r.Train == nil {
		errs = append(errs, errors.New("no Train step given"))
	}
	if r.Data == nil {
		errs = append(errs, errors.New("no Data given"))
	}
	switch {
	case r.TotalSteps < 0 && r.TotalSteps != AllData || r.LoopSteps < 0:
		errs = append(errs, fmt.Errorf("want TotalSteps and LoopSteps not negative, got %d and %d", r.TotalSteps, r.LoopSteps))
	case r.TotalSteps == 0 && until == nil:
		errs = append(errs, errors.New("no end given: want TotalSteps, loop.Until among the options, or TotalSteps train.AllData where the data ends the training"))
	case r.TotalSteps > 0 && until != nil:
		errs = append(errs, fmt.Errorf("the end is TotalSteps, %s, and loop.Until, %s: want one of the two", r.TotalSteps, until))
	}
	errs = append(errs, checkAggregations(r.Aggregate), checkEvals(r.Evals), checkActions(r.Begin), checkActions(r.End))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return r.unreachable(until)
}

// unreachable finds intervals that are longer than the training: mostly steps that were given for inner loops.
func (r *outerRun[S, B]) unreachable(until loop.Period) error {
	total, known := until.(loop.Steps)
	if r.TotalSteps > 0 {
		total, known = r.TotalSteps, true
	}
	if !known && r.LoopSteps > 0 || total == 0 && known {
		return nil
	}
	loops := InnerLoops(r.number(int64(total)))
	var errs []error
	never := func(what string, every InnerLoops) {
		if every > loops {
			errs = append(errs, fmt.Errorf("%s: never due: every %d inner loops, and the training has %d", what, every, loops))
		}
	}
	for _, e := range r.Evals {
		never(e.label(), e.Interval)
	}
	for _, a := range slices.Concat(r.Begin, r.End) {
		never(a.label(), a.Every)
	}
	return errors.Join(errs...)
}

// data opens the data within the run, where a panic is an error.
func (r *outerRun[S, B]) data(ctx context.Context) loop.Data[B] {
	return func(yield func(B, error) bool) {
		data, err := r.Data(ctx, r.from)
		if err == nil && data == nil {
			err = errors.New("no data given: Data gave nil")
		}
		if err != nil {
			var none B
			yield(none, err)
			return
		}
		data(yield)
	}
}

// loops is how many inner loops are done.
func (r *outerRun[S, B]) loops(done loop.Elapsed) InnerLoops {
	whole := int64(0)
	if r.LoopSteps > 0 {
		whole = done.Steps / int64(r.LoopSteps)
	}
	return InnerLoops(max(whole, r.last.Number))
}

// ending is the line of the [StoppedFile].
func ending[S any](result loop.Result[S]) string {
	line := fmt.Sprintf("%s after %s", result.Reason, loop.Steps(result.Elapsed.Steps))
	if result.Stop != nil {
		line += ": " + strings.ReplaceAll(result.Stop.Error(), "\n", "; ")
	}
	return line
}

func failed[S any](state S, at loop.Elapsed) loop.Result[S] {
	return loop.Result[S]{State: state, History: &loop.History{}, Elapsed: at, Reason: loop.Failed}
}
