package selection

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Search finds the parameters with which a model trains best.
type Search struct {
	// Space has the parameters.
	Space []Parameter
	// Trials is the number of distinct trials, which Seed determines.
	Trials int
	Seed   uint64
	// Grid replaces Trials by all combinations of Values, and of each range this number of evenly spaced points, or
	// all its integers if fewer.
	Grid int
	// FirstEpochs and Factor select successive halving (Jamieson and Talwalkar, 2016): all Trials train for
	// FirstEpochs, the best 1/Factor of them (rounded down) for Factor times as many epochs, and so on. A continued
	// trial is bit-identical to an uninterrupted one.
	FirstEpochs, Factor int
	// Asynchronous continues a trial when it is among the best 1/Factor of those that ended its rung (ASHA, Li et al.,
	// 2018), so that parallel Runs do not wait for each other; the table then depends on the results' order.
	Asynchronous bool
	// Bayesian draws each trial after the first ten from the results before it, where good ones are dense (TPE, Bergstra
	// et al., 2011). With FirstEpochs, these are the results of the first rung.
	Bayesian bool
	// PruneAfter, if not 0, ends a trial after this number of epochs or a later one, if its best value is worse than the
	// median of the values of five other trials or more after that epoch.
	PruneAfter int
	// Entry is the figure of Fit's history to optimize, like "val_loss". A trial has the value and the model of its best
	// epoch. Direction is the better direction; zero decides by the name, or is an error.
	Entry     string
	Direction loop.Mode
	Training  *data.Set
	// Make returns a new model for a trial, and its Fit. The search trains the model and closes it. With FirstEpochs,
	// each continuation calls Make, and Epochs and Until must be 0. checkpoint.Resume, InitialEpoch, EachStep and
	// FastDevRun are errors. A resumed search calls Make once more for a recorded trial, to compare its Fit.
	Make func(ctx context.Context, p *Parameters) (*flaxlike.Model, flaxlike.Fit, error)
	// Dir is the search's folder, created if needed, with a record of each ended trial, checkpoints of the current ones,
	// and the best model. Another Run with the same settings makes the missing trials. Concurrent Runs of several
	// processes share the trials.
	Dir string
	// OnTrial, if not nil, is called for each trial that ended or completed a rung, also for those of the folder.
	OnTrial func(Trial)
}

// Trial is the result of one choice of parameters.
type Trial struct {
	Number     int
	Parameters map[string]any
	// Value is the entry's best value, Epoch its epoch, from 1, Epochs the number of trained epochs, and Figures the
	// losses and metrics of Epoch.
	Value         float64
	Epoch, Epochs int
	Figures       map[string]float64
	// Pruned reports that PruneAfter ended it.
	Pruned bool
	// Err is the reason for no value.
	Err error
}

// Result is a search's result.
type Result struct {
	Entry     string
	Direction loop.Mode
	// Trials are the ended trials, the best first, failed ones last.
	Trials []Trial

	names []string
	dir   string
}

// Best returns the best trial; false if none has a value.
func (s *Result) Best() (Trial, bool) {
	if len(s.Trials) == 0 || s.Trials[0].Err != nil {
		return Trial{}, false
	}
	return s.Trials[0], true
}

// Path returns the file of the best trial's model, or "".
func (s *Result) Path() string {
	best, ok := s.Best()
	if !ok {
		return ""
	}
	return filepath.Join(s.dir, modelOf(best.Number))
}

// Open opens the best trial's model, as [flaxlike.Open] does.
func (s *Result) Open(ctx context.Context, options ...flaxlike.Option) (*flaxlike.Model, error) {
	if s.Path() == "" {
		return nil, errors.New("selection: search: no trial has a value, so there is no best model")
	}
	return flaxlike.Open(ctx, s.Path(), options...)
}

func (s *Result) rows(number func(float64) string) (rows [][]string) {
	rows = append(rows, slices.Concat([]string{"trial", s.Entry, "epoch", "epochs"}, s.names, []string{"failed"}))
	for _, t := range s.Trials {
		row, failed := []string{fmt.Sprint(t.Number), "", "", ""}, ""
		if t.Err != nil {
			failed = t.Err.Error()
		} else {
			row = []string{fmt.Sprint(t.Number), number(t.Value), fmt.Sprint(t.Epoch), fmt.Sprint(t.Epochs)}
		}
		for _, name := range s.names {
			v := t.Parameters[name]
			if f, ok := v.(float64); ok {
				row = append(row, number(f))
			} else {
				row = append(row, inGo(v))
			}
		}
		rows = append(rows, append(row, failed))
	}
	return rows
}

func (s *Result) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range s.rows(func(v float64) string { return fmt.Sprintf("%.6g", v) }) {
		last := len(row) - 1
		row[last], _, _ = strings.Cut(row[last], "\n")
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = table.Flush()
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// WriteCSV writes all trials, the best first. The columns are trial, the entry, epoch, epochs, the parameters, and
// failed.
func (s *Result) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(s.rows(func(v float64) string { return inGo(v) })); err != nil {
		return fmt.Errorf("selection: search: %w", err)
	}
	return nil
}

// Run makes the missing trials that no other process makes, waits for those, and returns the table of all. A trial
// fails by an error or panic of Make or Fit, or if a loss or the entry is not finite; the table has the reason.
// Another Run repeats a failed trial only if its record is removed or it failed in its first epoch. It is an error if
// all fail.
//
// Other errors end the search, with the table until then: a setting, training set (a sample is compared) or Fit that
// differs from the folder's; an entry that Fit does not log; a parameter that Make reads and the space lacks, or that
// no trial has read; a damaged record.
func (s Search) Run(ctx context.Context) (*Result, error) {
	found := &Result{Entry: s.Entry, dir: s.Dir}
	err := s.check()
	if err == nil {
		err = vfs.MkdirAll(s.Dir)
	}
	var files vfs.FS
	if err == nil {
		files, err = vfs.OS(s.Dir)
	}
	if err == nil {
		err = errors.Join(s.run(ctx, files, found), files.Close())
	}
	if err != nil {
		return found, fmt.Errorf("selection: search: %w", graphs.Inner(err))
	}
	return found, nil
}

func (s Search) check() error {
	switch {
	case s.Training == nil || s.Training.Len() == 0:
		return errors.New("the set Training is nil or has no examples")
	case s.Make == nil:
		return errors.New("the function Make is nil")
	case s.Entry == "":
		return errors.New(`the field Entry is empty, expected the name of the value to compare, as "val_loss"`)
	case s.Dir == "":
		return errors.New("the folder has no name: set Dir")
	}
	if err := checkSpace(s.Space); err != nil {
		return err
	}
	return s.checkMethod()
}

// directionOf does not guess: a wrong direction would return the worst trial.
func directionOf(entry string, given loop.Mode) (loop.Mode, error) {
	if err := better.Against(given, entry); err != nil {
		return given, fmt.Errorf("field Direction: %w", err)
	}
	mode, err := better.Of(given, entry)
	if given == 0 && err != nil {
		err = fmt.Errorf("%w: set Direction to loop.Highest or loop.Lowest", err)
	}
	return mode, err
}

type setting struct{ Name, Value string }

type plan struct {
	Version  int
	Settings []setting
}

const searchVersion = 1

// contentSetting is missing in older folders.
const contentSetting = "The checksum of examples of Training"

func contentOf(set *data.Set) string {
	batch, err := data.Peek(set.Batches(1).All())
	if err != nil || batch.Deal == nil {
		return ""
	}
	return batch.Deal.Content
}

func (s Search) plan(direction loop.Mode) plan {
	p := plan{Version: searchVersion, Settings: []setting{{"Method", s.method().String()}, {"Seed", fmt.Sprint(s.Seed)}, {"Entry", s.Entry},
		{"Direction", direction.String()}}}
	training := fmt.Sprintf("%d examples:", s.Training.Len())
	for _, f := range s.Training.Fields() {
		training += fmt.Sprintf(" %s %s%v", f.Name, f.Array.DType(), f.Array.Dims[1:])
	}
	p.Settings = append(p.Settings, setting{"Training", training})
	if s.PruneAfter > 0 {
		p.Settings = append(p.Settings, setting{"PruneAfter", fmt.Sprint(s.PruneAfter)})
	}
	if content := contentOf(s.Training); content != "" {
		p.Settings = append(p.Settings, setting{contentSetting, content})
	}
	for _, parameter := range s.Space {
		p.Settings = append(p.Settings, setting{fmt.Sprintf("Space, %q", parameter.Name), parameter.setting()})
	}
	return p
}

func (p plan) agree(folder plan) error {
	if folder.Version != p.Version {
		return fmt.Errorf("the folder is of version %d, expected %d: it was written by another version of lazo", folder.Version, p.Version)
	}
	without := func(s setting) bool { return s.Name == contentSetting }
	if !slices.ContainsFunc(folder.Settings, without) {
		p.Settings = slices.DeleteFunc(slices.Clone(p.Settings), without)
	}
	value := func(of plan, name string) string {
		for _, s := range of.Settings {
			if s.Name == name {
				return s.Value
			}
		}
		return "nothing"
	}
	for _, s := range slices.Concat(p.Settings, folder.Settings) {
		if now, then := value(p, s.Name), value(folder, s.Name); now != then {
			return fmt.Errorf("%s is %s, and that of the folder's search %s\n  use another folder for another search", s.Name, now, then)
		}
	}
	if !slices.Equal(p.Settings, folder.Settings) {
		return errors.New("the parameters of Space are in another order than in the folder's search\n  use another folder for another search")
	}
	return nil
}
