package loop

import (
	"errors"
	"iter"

	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/epochs"
	"github.com/lazo-ml/lazo/internal/reader"
)

// Source is data that a run can begin at any position. The batches of a set ([data.Set.Batches]) are a Source.
//
// [data.Set.Batches]: https://pkg.go.dev/github.com/lazo-ml/lazo/data#Set.Batches
type Source[B any] interface {
	// From returns the batches from a position on, each with a nil error. The position counts the earlier batches over all
	// epochs ([Elapsed].Steps). The batches end with their epoch, or continue into the next if they report its end
	// ([Stepper]). An error ends the run.
	From(position int64) iter.Seq2[B, error]
}

// Data makes a [Source] of a plain iterator. If [Until] is in [Epochs], the iterator must begin again for each epoch.
// Shuffled batches of a set in epoch 0 again are an error: the order would repeat.
//
// A batch must not change until its step is over; a block holds several. If an early batch is in the memory of an
// earlier one, the run makes single steps. The iterator runs on a goroutine of the run; if it waits, it should end
// with the run's context.
type Data[B any] func(yield func(B, error) bool)

// From skips the batches before the position. Fewer batches are an error.
func (d Data[B]) From(position int64) iter.Seq2[B, error] {
	return epochs.After(iter.Seq2[B, error](d), position)
}

// From makes a [Source] of a function that returns the batches from a position on, like a pipeline over a set:
//
//	loop.From(func(position int64) iter.Seq2[data.Batch, error] {
//		return data.Prefetch(set.Batches(32, data.Shuffle(0)).From(position), 4)
//	})
func From[B any](from func(position int64) iter.Seq2[B, error]) Source[B] {
	if from == nil {
		return nil
	}
	return sourceFunc[B](from)
}

type sourceFunc[B any] func(position int64) iter.Seq2[B, error]

func (f sourceFunc[B]) From(position int64) iter.Seq2[B, error] { return f(position) }

// With the examples that a training leaves out, or an error for a pipeline without them.
func whole[B any](data Source[B]) Source[B] {
	if isNil(data) {
		return data
	}
	if plain, ok := data.(Data[B]); ok {
		return Data[B](abilities.Complete(iter.Seq2[B, error](plain)))
	}
	return From(abilities.WholeFrom(data))
}

func measures[S, B any](tasks []Task[S, B]) (all bool) {
	for i := range tasks {
		if t := &tasks[i]; t.steps && !t.measures {
			return false
		} else if t.steps {
			all = true
		}
	}
	return all
}

func isNil[B any](data Source[B]) bool {
	d, plain := data.(Data[B])
	return data == nil || plain && d == nil
}

func epochsOf[B any](data Source[B], from Elapsed, until Period) epochs.Range[B] {
	plain, _ := data.(Data[B])
	most, _ := until.(Epochs)
	return epochs.Range[B]{Source: data, Plain: iter.Seq2[B, error](plain), Position: from.Steps, Epochs: from.Epochs, Once: until == nil, Until: int64(most)}
}

// ErrSourceLeft reports that a run abandoned its data source, which did not return within half a second after the
// context ended. Its goroutine continues until then.
var ErrSourceLeft = errors.New("the data source did not return within " + reader.Grace.String() + ": it was abandoned, with its goroutine")

var errNoData = errors.New("no data given")
