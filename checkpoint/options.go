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

// Options configure a folder, and how [Resume] saves a run. The zero Options of [Open] keep all checkpoints.
type Options struct {
	// Keep has rules; a checkpoint stays if any of them keeps it. Without rules, [Open] keeps all. [Resume] also keeps
	// the two newest if no rule has a Last. The newest complete checkpoint and the one just saved always stay.
	Keep []Retention
	// Overwrite allows saving a step that exists, otherwise [ErrExists] unless it is damaged. With Overwrite a run may
	// begin before the newest checkpoint; its first save removes the later ones.
	Overwrite bool
	// ReadBack verifies each save, which takes about 15 % longer; otherwise only the first after opening. The bytes
	// usually come from the page cache, so this finds failing writes, not later damage.
	ReadBack bool
	// LeaveSharded leaves sharded tensors in their files, with Write instead of Data, for states larger than memory.
	// Write works while the folder is open and the checkpoint exists. Resume sets it in a job.
	LeaveSharded bool
	// ReadOnly takes no lock and changes nothing.
	ReadOnly bool
	// Log receives removals at opening, skipped damaged checkpoints, tolerated failures, and differences of a resumed
	// run. Nil means no log.
	Log *slog.Logger

	// The fields below are for Resume; Open refuses them.

	// When is the schedule of saves, default every 10 minutes. [Every] sets it.
	When loop.Schedule
	// Best is the metric whose best checkpoint is kept; see [KeepBest].
	Best string
	// Mode is whether lower or higher is better. Zero decides by the name of Best.
	Mode loop.Mode
	// AgainstName allows a Mode that contradicts the name of Best, such as a loss to maximize.
	AgainstName bool
	// Tolerate is the number of saves that may fail, with a warning in the log, before the run ends. The last save must
	// succeed.
	Tolerate int
	// Also has pointers to further values, by section, that are saved as JSON and read when the run is resumed. A data
	// position must be counted before the batch is returned; a save with batches taken ahead ([loop.Report].Ahead) is
	// an error. A source in data.Prefetch or data.ParallelMap must not change these values, because it is several
	// batches ahead.
	Also map[string]any
	// Same has settings that must equal those of the saved run: a struct or a map, compared as JSON. A difference is an
	// error that wraps [ErrChanged], and nothing is restored.
	Same any
	// Changed is called for each [Difference] of a resumed run, before the first step or, for the data and batch size,
	// after it. An error ends the run. In a job, rank 0 calls it.
	Changed func(Difference) error
	// At is the checkpoint to resume from. Nil means the newest good one.
	At *Step
	// IgnoreEnd continues a run that was stopped ([loop.ErrStop]).
	IgnoreEnd bool
}

// Every saves a run each time the period has passed.
func Every(p loop.Period) Options { return Options{When: loop.Every(p)} }

// KeepBest saves the run in each iteration with a better value of the metric, keeps the best checkpoint, and restores
// it into the state at a normal end. The metric's name decides whether lower or higher is better; for other names set
// Best and Mode of [Options].
//
// The best is that of all resumed runs. The last step is saved too, and a longer run continues from it.
// [loop.Result].Elapsed is that of the last iteration. A run that was cancelled, failed, or has no finite value keeps
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
	for name, x := range o.Also {
		if v := reflect.ValueOf(x); v.Kind() != reflect.Pointer || v.IsNil() {
			errs = append(errs, fmt.Errorf("option Also %q: expected a pointer to the value to save and restore, got %T", name, x))
		}
	}
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
