package checkpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/loop"
)

// Options configure a folder, and how [Resume] saves a run.
type Options struct {
	// Keep has rules; a checkpoint stays if any keeps it. Without rules, [Open] keeps all. [Resume] also keeps the two
	// newest if no rule has a Last. The newest complete checkpoint and the one just saved always stay.
	Keep []Retention
	// Overwrite allows saving an undamaged step again, and a run to begin before the newest checkpoint, otherwise
	// [fs.ErrExist]; right before its first save is complete, later ones are removed.
	Overwrite bool
	// ReadBack verifies each save, about 15 % slower, not only the first after opening. It finds failing writes, not
	// later damage.
	ReadBack bool
	// LeaveSharded leaves sharded tensors in their files, with Write instead of Data, which works while the folder is
	// open and the checkpoint exists. Resume sets it in a job.
	LeaveSharded bool
	// ReadOnly takes no lock and changes nothing.
	ReadOnly bool
	// Log receives removals at opening, skipped damaged checkpoints, tolerated failures, and a resumed run's
	// differences, if not nil.
	Log *slog.Logger
	// Saved, if set, is called after each write of a checkpoint, or of this process's part, perhaps in the
	// background.
	Saved func(step Step, took time.Duration, err error)

	// Open refuses the fields below.

	// When is the schedule of saves, default every 10 minutes.
	When loop.Schedule
	Best string
	Mode loop.Mode
	// AgainstName allows a Mode that contradicts Best's name, like a loss to maximize.
	AgainstName bool
	// Tolerate is the maximum number of saves, except the last, that may fail, with a warning in the log, before the
	// run ends.
	Tolerate int
	// Also has pointers to values, by section, that are saved as JSON and read when the run is resumed; a slice of bools
	// or numbers of a fixed size, like []float32 of a replay buffer, in binary. An unexported field is an error, unless
	// marked `json:"-"`. Count a data position before the batch is returned; a save with batches taken ahead
	// ([loop.Report].Ahead) is an error. A source that is ahead, in data.Prefetch or data.ParallelMap, must not change
	// these values.
	Also map[string]any
	// Same has settings, a struct or a map, that must equal the saved ones as JSON. After a difference, an error,
	// nothing is restored.
	Same any
	// Changed is called, in a job by rank 0, for each [Difference] of a resumed run, before the first step or, for the
	// data and batch size, after it. An error ends the run.
	Changed func(Difference) error
	// At is the checkpoint to resume from; nil: the newest good one.
	At *Step
	// IgnoreEnd continues a stopped run ([loop.ErrStop]).
	IgnoreEnd bool
}

// Every saves a run whenever the period has passed.
func Every(p loop.Period) Options { return Options{When: loop.Every(p)} }

// KeepBest saves the run in each iteration with the metric's best value yet, in all resumed runs, keeps the best
// checkpoint, and restores it into the state at a normal end. The metric's name decides whether lower or higher is
// better; for other names set Best and Mode of [Options].
//
// The last step is saved too; a longer run continues from it. A run without a finite value, cancelled or failed, keeps
// its last state.
func KeepBest(metric string) Options {
	if metric == "" {
		return Options{Mode: -1}
	}
	return Options{Best: metric}
}

func (o Options) bestRule() Retention { return Retention{Best: 1, Metric: o.Best, Mode: o.Mode} }

var firstOfRun = func() int {
	field, _ := reflect.TypeFor[Options]().FieldByName("When")
	return field.Index[0]
}()

func (o Options) ofRun() string { return o.firstSet(firstOfRun, reflect.TypeFor[Options]().NumField()) }

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

func (o Options) opening() Options {
	fields := reflect.ValueOf(&o).Elem()
	for i := firstOfRun; i < fields.NumField(); i++ {
		fields.Field(i).SetZero()
	}
	return o
}

func merged(list []Options) Options {
	var all Options
	to := reflect.ValueOf(&all).Elem()
	for _, o := range list {
		keep, also := append(all.Keep, o.Keep...), maps.Clone(all.Also)
		if o.Best != "" {
			all.Mode, all.AgainstName = 0, false
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

func (o *Options) check() error {
	if !isSet(o.When) {
		o.When = loop.Every(defaultPeriod)
	}
	var errs []error
	if o.ReadOnly {
		errs = append(errs, errors.New("ReadOnly: a run saves into its folder"))
	}
	if o.Tolerate < 0 || o.Tolerate > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("option Tolerate is %d: expected 0 to %d", o.Tolerate, math.MaxInt32))
	}
	for _, name := range sortedKeys(o.Also) {
		errs = append(errs, checkAlso(name, o.Also[name]))
	}
	errs = append(errs, checkSame(o.Same))
	if o.Best != "" {
		if _, err := better.Of(o.Mode, o.Best); err != nil {
			errs = append(errs, fmt.Errorf("%w: give Options{Best: %q, Mode: loop.Lowest} or loop.Highest", err, o.Best))
		} else if err := better.Against(o.Mode, o.Best); err != nil && !o.AgainstName {
			errs = append(errs, fmt.Errorf("%w; if this is intended, set AgainstName", err))
		}
	} else if o.Mode != 0 {
		errs = append(errs, errors.New("KeepBest, or Mode, without the name of a metric: give the name to KeepBest, or set Best"))
	}
	return errors.Join(errs...)
}
