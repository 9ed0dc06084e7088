package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/loop"
)

// Options configure a folder, and how [Resume] saves a run into it. The zero Options of [Open] keep all checkpoints.
type Options struct {
	// Keep lists rules. A checkpoint stays if one of them keeps it. If Keep is empty, [Open] keeps all, and [Resume]
	// the two newest. Resume also keeps the two newest if no rule has a Last. The newest complete checkpoint and the
	// one just saved always stay.
	Keep []Retention
	// Overwrite lets Save replace a checkpoint of the same step. Without it that is [ErrExists], unless the existing
	// one is damaged. With Overwrite a run may also begin before the newest checkpoint of its folder; its first save
	// removes the later ones.
	Overwrite bool
	// ReadBack verifies the checksums of each save before it counts, which adds about 15 % to its time. Without it only
	// the first save after opening is verified. The bytes usually come from the page cache, so this finds a disk that
	// cannot be written, not one that fails later.
	ReadBack bool
	// LeaveCut makes Newest, Load and Best verify sharded tensors but leave them in their files. The tensor then has
	// Write instead of Data, which reads it whole while the folder is open and the checkpoint exists. Use it for states
	// larger than memory. Resume sets it for the processes of a job.
	LeaveCut bool
	// ReadOnly takes no lock and changes nothing. Checkpoints can be read while another process saves.
	ReadOnly bool
	// Log receives what was removed at the start, skipped damaged checkpoints, tolerated failures of saves, and
	// differences between a resumed run and the saved one. Nil means no log.
	Log *slog.Logger

	// The fields below are for Resume only. Open refuses them.

	// When is the schedule of the saves, by default every 10 minutes. [Every] sets it.
	When loop.Schedule
	// Best is the metric whose best checkpoint is kept; see [KeepBest].
	Best string
	// Mode is whether lower or higher values of Best are better. The zero Mode chooses by the metric's name.
	Mode loop.Mode
	// Tolerate is the number of saves that may fail before the run ends. Each failure is logged, and the next save is
	// made when it is due. The last save of a run must succeed.
	Tolerate int
	// Also holds pointers to values that are saved with the state, by the names of their sections. Each is written as
	// JSON with every checkpoint and read when the run is resumed.
	//
	// A data position that the program counts itself must be counted before the batch is returned, so that it belongs
	// to the saved step. If a step has another position ([loop.Report].Ahead), saving it is an error. A source in
	// data.Prefetch or data.ParallelMap must not change these values: it is several batches ahead, and the run cannot
	// notice.
	Also map[string]any
	// Same holds settings that a resumed run must share with the saved one: a struct or a map, compared as JSON. A
	// difference is an error that wraps [ErrChanged] and names it. Nothing is restored then.
	Same any
	// Changed is called for each [Difference] of a resumed run: before the first step, or right after it for what is
	// known only then, such as the data and the batch size. An error ends the run. With several processes, rank 0 calls
	// it.
	Changed func(Difference) error
	// At is the step of the checkpoint to resume from. Nil means the newest good one.
	At *Step
	// IgnoreEnd continues a run that was stopped ([loop.ErrStop]).
	IgnoreEnd bool
}

// Every saves a run each time the period has passed.
func Every(p loop.Period) Options { return Options{When: loop.Every(p)} }

// KeepBest keeps the checkpoint with the best value of a metric, in addition to the newest ones. It saves the run in
// each iteration that logs a better value. At a normal end of the run it restores the best state into the state. The
// metric's name decides whether lower or higher is better; for other names set Best and Mode of [Options].
//
// It needs no copy in memory, and it knows the best of all runs that were resumed from one another. The last step is
// saved first: [loop.Result].Elapsed is that of the last iteration, and a longer run continues from there. A run that
// was cancelled or has failed, or that has no finite value of the metric, keeps its last state.
func KeepBest(metric string) Options {
	if metric == "" {
		return Options{Mode: -1} // an error later; an empty Best would be ignored
	}
	return Options{Best: metric}
}

func (o Options) bestRule() Retention { return Retention{Best: 1, Metric: o.Best, Mode: o.Mode} }

// firstOfRun is the index of the first field that only Resume reads. Only opening a folder reads those before it.
var firstOfRun = func() int {
	field, _ := reflect.TypeFor[Options]().FieldByName("When")
	return field.Index[0]
}()

// ofRun returns the name of a field for Resume that is set, or "".
func (o Options) ofRun() string { return o.firstSet(firstOfRun, reflect.TypeFor[Options]().NumField()) }

// ofFolder returns the name of a field for opening that is set, or "".
func (o Options) ofFolder() string { return o.firstSet(0, firstOfRun) }

func (o Options) firstSet(from, to int) string {
	fields := reflect.ValueOf(o)
	for i := from; i < to; i++ {
		if fields.Field(i).IsZero() {
			continue
		}
		name := fields.Type().Field(i).Name
		if function, ok := map[string]string{"When": "Every", "Best": "KeepBest"}[name]; ok {
			return name + " or " + function
		}
		return name
	}
	return ""
}

func isSet(x any) bool { return !reflect.ValueOf(x).IsZero() }

// opening returns the fields that Open reads.
func (o Options) opening() Options {
	fields := reflect.ValueOf(&o).Elem()
	for i := firstOfRun; i < fields.NumField(); i++ {
		fields.Field(i).SetZero()
	}
	return o
}

// merged joins options. Lists are appended; of each other field the last set value counts. Mode belongs to Best.
func merged(list []Options) Options {
	var all Options
	to := reflect.ValueOf(&all).Elem()
	for _, o := range list {
		keep, also := append(all.Keep, o.Keep...), maps.Clone(all.Also)
		if o.Best != "" {
			all.Mode = 0
		}
		from := reflect.ValueOf(o)
		for i := range to.NumField() {
			if !from.Field(i).IsZero() {
				to.Field(i).Set(from.Field(i))
			}
		}
		if all.Keep = slices.Clip(keep); also != nil {
			maps.Copy(also, o.Also)
			all.Also = also
		}
	}
	return all
}

const defaultPeriod = loop.Time(10 * time.Minute)

// check validates the fields for a run and sets their defaults.
func (o *Options) check() error {
	if !isSet(o.When) {
		o.When = loop.Every(defaultPeriod)
	}
	var errs []error
	if o.ReadOnly {
		errs = append(errs, errors.New("ReadOnly: a run saves into its folder"))
	}
	if o.Tolerate < 0 || o.Tolerate > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("option Tolerate is %d: expected a number that is not negative", o.Tolerate))
	}
	for name, x := range o.Also {
		if v := reflect.ValueOf(x); v.Kind() != reflect.Pointer || v.IsNil() {
			errs = append(errs, fmt.Errorf("option Also %q: expected a pointer to what is saved and read again, got %T", name, x))
		}
	}
	if o.Best != "" {
		_, err := o.Mode.Of(o.Best)
		if err != nil {
			err = fmt.Errorf("%w: give Options{Best: %q, Mode: loop.Lowest} or loop.Highest", err, o.Best)
		}
		errs = append(errs, cmp.Or(err, o.Mode.Against(o.Best)))
	} else if o.Mode != 0 {
		errs = append(errs, errors.New("KeepBest, or Mode, without the name of a metric: give the name to KeepBest, or set Best"))
	}
	return errors.Join(errs...)
}
