package outer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Loop is training in inner loops of some steps, with evaluations and actions at their borders. It is one [loop.Loop]
// over all steps: options such as a progress bar and [loop.WatchEntry] work as they do there, entries of an
// evaluation stand in the history with its name behind, as loss_test, and a [loop.BlockStepper] makes blocks that end
// at the borders.
//
// At the border of an inner loop come the evaluations in their order, then the end actions in theirs, which see what
// the evaluations gave, then the callbacks of the options.
//
// Inner loops are counted from the first step of the training, so that a run that is resumed has the borders of one
// that was not: with LoopSteps 10, a run from step 55 to 100 has inner loops of 5, 10, 10, 10 and 10 steps, with the
// numbers 6 to 10. The last inner loop ends with the run; without a step it has no border. A run that is cancelled or
// fails has no last border.
type Loop[S, B any] struct {
	// Train makes one step.
	Train loop.Stepper[S, B]
	// Data opens the data of the run, once: all inner loops go on in it. It begins behind the steps of from, which is
	// what [loop.From] among the options says.
	Data func(ctx context.Context, from loop.Elapsed) (loop.Data[B], error)
	// TotalSteps ends the training; it counts the steps of earlier runs too. With [AllData] the training ends with
	// its data. Zero leaves the end to [loop.Until] among the options, and is an error without it.
	TotalSteps loop.Steps
	// LoopSteps is the length of an inner loop. With zero the whole run is one inner loop.
	LoopSteps loop.Steps
	// Reset clears what the state sums up over an inner loop, as mean metrics do. It runs after the last step of an
	// inner loop has logged, within each evaluation before its first batch, and after each, so that the next inner
	// loop starts clean also where the state changes in place.
	Reset func(ctx context.Context, state S) (S, error)
	// Tasks are further tasks of the loop, behind Train in their turns.
	Tasks []loop.Task[S, B]
	Evals []Eval[S, B]
	// Begin actions come before the first step of an inner loop, when its batch is there. After a wish to stop the
	// step is still made.
	Begin, End []Action[S]
	// Aggregate makes the outputs of an inner loop from what its steps logged.
	Aggregate loop.Aggregations
	// Dir, if there is one, is the folder of the [StoppedFile], which ends a [Continuous] evaluation.
	Dir string
}

// AllData as [Loop.TotalSteps] trains until the data ends or something asks to stop.
const AllData loop.Steps = -1

// Result is how an outer loop ended. It is valid also beside an error.
type Result[S any] struct {
	// Result has the history of all steps of this run.
	loop.Result[S]
	// Loops is the number of inner loops that are done, those of earlier runs and one that the end cut short
	// included.
	Loops InnerLoops
	// Last is the last inner loop of this run that was done with its evaluations.
	Last Inner
	// Evaluations has the newest of each name.
	Evaluations map[string]Inner
}

// Run trains as [loop.Loop.Run] does.
func (l Loop[S, B]) Run(ctx context.Context, state S, options ...loop.Option) (Result[S], error) {
	if err := l.check(); err != nil {
		return Result[S]{Result: failed(state)}, fmt.Errorf("outer: %w", err)
	}
	r := &run[S, B]{Loop: l, evaluations: newEvaluations(), logged: map[string]bool{}, start: time.Now()}
	result, err := loop.New(r.tasks()...).Run(ctx, state, r.data(ctx), slices.Concat(r.options(), options)...)
	if err == nil && l.Dir != "" {
		if err = writeStopped(l.Dir, ending(result)); err != nil {
			result.Reason, err = loop.Failed, fmt.Errorf("outer: at the end: %w", err)
		}
	}
	return Result[S]{result, r.loops(result.Elapsed), r.last, r.results}, err
}

func (l Loop[S, B]) check() error {
	var errs []error
	if l.Train == nil {
		errs = append(errs, errors.New("no Train step given"))
	}
	if l.Data == nil {
		errs = append(errs, errors.New("no Data given"))
	}
	if l.TotalSteps < 0 && l.TotalSteps != AllData || l.LoopSteps < 0 {
		negative := fmt.Errorf("want TotalSteps and LoopSteps not negative, got %d and %d", l.TotalSteps, l.LoopSteps)
		errs = append(errs, negative)
	}
	errs = append(errs, l.Aggregate.Err(), checkEvals(l.Evals), checkActions(l.Begin), checkActions(l.End))
	return errors.Join(errs...)
}

// checkEnd finds what is wrong with the end of the run.
func (l Loop[S, B]) checkEnd(until loop.Period) error {
	switch {
	case l.TotalSteps == 0 && until == nil:
		return errors.New("no end given: want TotalSteps, loop.Until among the options, " +
			"or TotalSteps outer.AllData where the data ends the training")
	case l.TotalSteps > 0 && until != l.TotalSteps:
		return fmt.Errorf("the end is TotalSteps, %s, and loop.Until, %s: want one of the two", l.TotalSteps, until)
	}
	return l.unreachable(until)
}

// unreachable finds intervals that are longer than the training: mostly numbers of steps in place of inner loops.
func (l Loop[S, B]) unreachable(until loop.Period) error {
	total, known := until.(loop.Steps)
	if !known && l.LoopSteps > 0 || total == 0 && known {
		return nil
	}
	loops := InnerLoops(l.number(int64(total)))
	var errs []error
	never := func(what string, every InnerLoops) {
		if every > loops {
			err := fmt.Errorf("%s: never due: every %d inner loops, and the training has %d", what, every, loops)
			errs = append(errs, err)
		}
	}
	for _, e := range l.Evals {
		never(e.label(), e.Every)
	}
	for _, a := range slices.Concat(l.Begin, l.End) {
		never(a.label(), a.Every)
	}
	return errors.Join(errs...)
}

// number is the number of the inner loop that a step is in, from 1.
func (l Loop[S, B]) number(step int64) int64 {
	if l.LoopSteps == 0 {
		return 1
	}
	return (step-1)/int64(l.LoopSteps) + 1
}

// ending is the line of the [StoppedFile].
func ending[S any](result loop.Result[S]) string {
	line := fmt.Sprintf("%s after %s", result.Reason, loop.Steps(result.Elapsed.Steps))
	if result.Stop != nil {
		line += ": " + strings.ReplaceAll(result.Stop.Error(), "\n", "; ")
	}
	return line
}

func failed[S any](state S) loop.Result[S] {
	return loop.Result[S]{State: state, History: &loop.History{}, Reason: loop.Failed}
}
