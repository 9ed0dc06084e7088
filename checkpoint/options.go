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

// Options are how a folder is used, and how a run is saved into it by [Resume]. The zero Options of [Open] keep all
// checkpoints.
type Options struct {
	// Keep says which checkpoints stay: those that any of its rules keeps. If it is empty, [Open] keeps all, and [Resume]
	// the two newest. Resume keeps the two newest as well if no rule has a Last. The newest complete checkpoint stays in
	// any case, as does the one just saved.
	Keep []Retention
	// Overwrite lets Save put a new checkpoint in the place of one with the same step. Without, that is [ErrExists],
	// unless the one there is damaged. With Overwrite, a run may begin before the newest checkpoint of its folder: its
	// first save removes those of more steps.
	Overwrite bool
	// ReadBack has each save read again, and its checksums verified, before it counts: about 15 % of the time of a save.
	// Without it the first save since the folder was opened is. The bytes come from the computer's cache, as a rule: this
	// finds a disk that cannot be written, not one that fails later.
	ReadBack bool
	// LeaveCut has Newest, Load and Best leave tensors that are sharded over several processes in their files, when
	// they have checked them: Write, in place of Data, reads one, whole, as long as the folder is open and the
	// checkpoint there. So a state can be restored that no memory has whole. Resume sets it for the processes of a job.
	LeaveCut bool
	// ReadOnly takes no lock and changes nothing, so that checkpoints can be read while another process saves some.
	ReadOnly bool
	// Log reports what was removed at the start, damaged checkpoints that were passed over, tolerated failures of
	// saves, and what differs between a resumed run and the saved one. Nil is no log.
	Log *slog.Logger

	// All that follows is for Resume alone. Open refuses it.

	// When is the schedule of the saves, if Every does not say it. The default is every 10 minutes.
	When loop.Schedule
	// Best is the name of the metric that the best checkpoint is kept by: see [KeepBest].
	Best string
	// Mode says whether lower or higher values of Best are better. The zero Mode decides by its name.
	Mode loop.Mode
	// Tolerate is the number of saves that may fail before the run ends. Each failure is logged, and the next save is
	// made when it is due. The last save of a run must succeed.
	Tolerate int
	// Also are values that are saved with the state: pointers, by the names of their sections. Each is written as JSON
	// with every checkpoint, and read again when the run is resumed. A position in data that the program counts itself
	// must be counted before the batch is handed out. It then belongs to the step that is saved; a step that would have
	// another position ([loop.Report].Ahead) is not saved, which is an error. A source in data.Prefetch or
	// data.ParallelMap must not change these values: it is several batches ahead of the step, and a run cannot notice.
	Also map[string]any
	// Same are settings that a resumed run must have in common with the saved one: a struct or a map, compared as JSON.
	// A difference is an error that wraps [ErrChanged] and names it. Nothing is restored then.
	Same any
	// Changed is called for each [Difference] of a resumed run: before the first step, or right after it for what is
	// known only then, such as the data and the batch size. An error ends the run. With several processes, rank 0 calls
	// it.
	Changed func(Difference) error
	// At is the step of the checkpoint to resume from. Nil is the newest good one.
	At *Step
	// IgnoreEnd continues a run that was stopped ([loop.ErrStop]) as if it had not been.
	IgnoreEnd bool
}

// Every saves a run each time that the period has passed.
func Every(p loop.Period) Options { return Options{When: loop.Every(p)} }

// KeepBest keeps the checkpoint with the best value of a metric, beside the newest ones: a run is saved in each
// iteration that logs a better value. At a normal end of the run, the best state is put back into the state. The name
// says whether lower or higher is better; for other names set Best and Mode of [Options].
//
// It needs no copy in memory, and it knows the best of all runs that were resumed from one another. The last step is
// saved before: [loop.Result].Elapsed is that of the last iteration, and a longer run continues from there. A run that
// was cancelled or has failed keeps its last state, as does one without a finite value of the metric.
func KeepBest(metric string) Options {
	if metric == "" {
		return Options{Mode: -1} // a Mode without a Best is an error, no Best would be none
	}
	return Options{Best: metric}
}

// bestRule keeps the best by Best.
func (o Options) bestRule() Retention { return Retention{Best: 1, Metric: o.Best, Mode: o.Mode} }

// firstOfRun is the number of the first field that only Resume reads; only opening a folder reads those before it.
var firstOfRun = func() int {
	field, _ := reflect.TypeFor[Options]().FieldByName("When")
	return field.Index[0]
}()

// ofRun is the name of a field that only Resume reads, if one is set.
func (o Options) ofRun() string { return o.firstSet(firstOfRun, reflect.TypeFor[Options]().NumField()) }

// ofFolder is the name of a field that only opening a folder reads, if one is set.
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

// opening are the fields that Open reads.
func (o Options) opening() Options {
	fields := reflect.ValueOf(&o).Elem()
	for i := firstOfRun; i < fields.NumField(); i++ {
		fields.Field(i).SetZero()
	}
	return o
}

// merged joins options: lists are joined, and of each other field the last one that is set counts. Mode belongs to
// Best.
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

// check finds mistakes in the fields for a run, and fills in the defaults of these.
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
