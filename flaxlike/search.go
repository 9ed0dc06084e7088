package flaxlike

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Search looks for the parameters with which a model trains best.
type Search struct {
	// Space are the parameters, Method says which of their values are tried, and Seed draws them: the trials of a
	// seed are the same whatever ran before.
	Space  []Parameter
	Method Method
	Seed   uint64
	// Entry is what decides, a figure of Fit's history, as "val_loss": a trial has the best value of its epochs, and
	// the model of that epoch. Direction says which is better; [loop.Auto] knows losses, errors and the metrics by
	// name, and is an error for others.
	Entry     string
	Direction loop.Mode
	// Training is what each model is trained on.
	Training *data.Set
	// Make gives the model of a trial, a new one each time, and how to fit it. The search does so, and closes it.
	// With SuccessiveHalving it is called each time a trial goes on, and Epochs and Until must not be set.
	// Checkpoints, InitialEpoch, EachStep and FastDevRun are not for a search.
	Make func(ctx context.Context, p *Parameters) (*Model, Fit, error)
	// Dir is the folder of the search, which is made if it is not there: a record of each trial that ended, its
	// checkpoints while it goes on, and the best model. A search that ended or was killed, started again with the
	// same settings, makes what is missing and comes to the same table.
	Dir string
	// OnTrial, if it is not nil, is called for each trial that ended, or was trained until it may go on, also those
	// of the folder.
	OnTrial func(Trial)
}

// Trial is what came of one choice of parameters.
type Trial struct {
	// Number is its place among those that were drawn, from 0 on.
	Number     int
	Parameters map[string]any
	// Value is the best one of the search's entry, Epoch the epoch that had it, from 1 on, Epochs how many were made,
	// and Figures the losses and metrics of that epoch.
	Value         float64
	Epoch, Epochs int
	Figures       map[string]float64
	// Failed says why there is no value, "" where there is one.
	Failed string
}

// Searched is what a search found.
type Searched struct {
	Entry     string
	Direction loop.Mode // Lowest or Highest
	// Trials are those that ended, the best first; those that failed stand last.
	Trials []Trial

	names []string // of the parameters
	dir   string
}

// Best is the best trial; false where none has a value.
func (s *Searched) Best() (Trial, bool) {
	if len(s.Trials) == 0 || s.Trials[0].Failed != "" {
		return Trial{}, false
	}
	return s.Trials[0], true
}

// Path is the file of the best trial's model, "" where there is none.
func (s *Searched) Path() string {
	best, ok := s.Best()
	if !ok {
		return ""
	}
	return filepath.Join(s.dir, modelOf(best.Number))
}

// Open opens the best trial's model, as [Open] does.
func (s *Searched) Open(ctx context.Context, options ...Option) (*Model, error) {
	if s.Path() == "" {
		return nil, errors.New("flaxlike: search: no trial has a value, so there is no best model")
	}
	return Open(ctx, s.Path(), options...)
}

// rows are a line of titles and one for each trial.
func (s *Searched) rows(number func(float64) string) (rows [][]string) {
	rows = append(rows, slices.Concat([]string{"trial", s.Entry, "epoch", "epochs"}, s.names, []string{"failed"}))
	for _, t := range s.Trials {
		row := []string{fmt.Sprint(t.Number), "", "", ""}
		if t.Failed == "" {
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
		rows = append(rows, append(row, t.Failed))
	}
	return rows
}

// String is a table with a line for each trial, the best first, its numbers rounded.
func (s *Searched) String() string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range s.rows(func(v float64) string { return fmt.Sprintf("%.6g", v) }) {
		last := len(row) - 1
		row[last], _, _ = strings.Cut(row[last], "\n")
		fmt.Fprintln(table, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	_ = table.Flush() // a strings.Builder takes all
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// WriteCSV writes the table of all trials, the best first, with all digits: columns trial, the entry's, epoch,
// epochs, those of the parameters, and failed.
func (s *Searched) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(s.rows(func(v float64) string { return inGo(v) })); err != nil {
		return fmt.Errorf("flaxlike: search: %w", err)
	}
	return nil
}

// Run makes the trials that are missing, one after the other, and gives the table of all. A trial that fails, by an
// error or a panic of Make or Fit, or because a loss or the entry is not finite, stands in it with its reason, and
// the search goes on; so it is when the search is run again, unless its record is taken away. It is an error if all
// fail.
//
// Errors that end the search: another space, method, seed, entry or training set than the folder's, which is named; a
// name that Make reads and the space lacks; parameters that no trial has read; a record that is damaged or cannot be
// written; and a context that ends, with its cause. The table has the trials until then.
func (s Search) Run(ctx context.Context) (*Searched, error) {
	found := &Searched{Entry: s.Entry, dir: s.Dir}
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
		return found, fmt.Errorf("flaxlike: search: %w", graphs.Inner(err))
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
		return errors.New(`there is no Entry that decides, as "val_loss"`)
	case s.Dir == "":
		return errors.New("the folder has no name: set Dir")
	}
	if err := checkSpace(s.Space); err != nil {
		return err
	}
	return s.Method.check()
}

// higherIsBetter and lowerIsBetter are the metrics whose direction is known beside those that are named in loop.Auto.
var higherIsBetter = map[string]bool{"accuracy": true, "acc": true, "auc": true, "sparse_categorical_accuracy": true, "categorical_accuracy": true,
	"binary_accuracy": true, "top_5_accuracy": true, "sparse_top_k_categorical_accuracy": true, "r2_score": true, "r2": true,
	"cosine_similarity": true, "precision": true, "recall": true, "f1_score": true, "f1": true, "mean_iou": true, "pearson_correlation": true,
	"concordance_correlation": true}

// directionOf is that of an entry, whose name may have a set's in front.
func directionOf(entry string, given loop.Mode) (loop.Mode, error) {
	if given != loop.Auto {
		return given.Of(entry)
	}
	is := func(name string) bool { return entry == name || strings.HasSuffix(entry, "_"+name) }
	if is("loss") || is("error") {
		return loop.Lowest, nil
	}
	longest := ""
	for name := range metricsByName {
		if is(name) && len(name) > len(longest) {
			longest = name
		}
	}
	switch {
	case longest == "":
		return given, fmt.Errorf("nothing says whether a high or a low %q is better: set Direction to loop.Highest or loop.Lowest", entry)
	case higherIsBetter[longest]:
		return loop.Highest, nil
	}
	return loop.Lowest, nil
}

// setting is a line of what a search is.
type setting struct{ Name, Value string }

// plan is what a folder must agree with.
type plan struct {
	Version  int
	Settings []setting
}

const searchVersion = 1

func (s Search) plan(direction loop.Mode) plan {
	p := plan{Version: searchVersion, Settings: []setting{{"Method", s.Method.String()}, {"Seed", fmt.Sprint(s.Seed)}, {"Entry", s.Entry},
		{"Direction", direction.String()}}}
	training := fmt.Sprintf("%d examples:", s.Training.Len())
	for _, f := range s.Training.Fields() {
		training += fmt.Sprintf(" %s %s%v", f.Name, f.Array.DType(), f.Array.Dims[1:])
	}
	p.Settings = append(p.Settings, setting{"Training", training})
	for _, parameter := range s.Space {
		p.Settings = append(p.Settings, setting{fmt.Sprintf("Space, %q", parameter.name), parameter.String()})
	}
	return p
}

// agree names the first difference between what a folder's search is and this one.
func (p plan) agree(folder plan) error {
	if folder.Version != p.Version {
		return fmt.Errorf("the folder is of version %d, expected %d: it was written by another lazo", folder.Version, p.Version)
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
			return fmt.Errorf("%s is %s, and that of the folder's search %s\n  take another folder for another search", s.Name, now, then)
		}
	}
	if !slices.Equal(p.Settings, folder.Settings) {
		return errors.New("the parameters of Space stand in another order than in the folder's search\n  take another folder for another search")
	}
	return nil
}

// trialRecord is what a trial came to in a rung.
type trialRecord struct {
	Number     int                `json:"trial"`
	Parameters map[string]string  `json:"parameters"`
	Value      float64            `json:"value"`
	Epoch      int                `json:"epoch"`
	Epochs     int                `json:"epochs"`
	Figures    map[string]float64 `json:"figures,omitempty"`
	Failed     string             `json:"failed,omitempty"`
	Read       []string           `json:"read,omitempty"`
}

func modelOf(number int) string       { return fmt.Sprintf("trial-%04d.safetensors", number) }
func checkpointsOf(number int) string { return fmt.Sprintf("trial-%04d-checkpoints", number) }
func recordOf(number, rung int) string {
	return fmt.Sprintf("trial-%04d-%d.json", number, rung)
}

// searching is a search that runs.
type searching struct {
	Search
	folder    *searchFolder
	direction loop.Mode
	trials    [][]any
	newest    map[int]*trialRecord // of each trial that has one
	read      map[string]bool
	found     *Searched
}

func (s Search) run(ctx context.Context, files vfs.FS, found *Searched) (err error) {
	r := searching{Search: s, newest: map[int]*trialRecord{}, read: map[string]bool{}, found: found}
	if r.direction, err = directionOf(s.Entry, s.Direction); err != nil {
		return err
	}
	if r.trials, err = s.Method.valuesOf(s.Space, s.Seed); err != nil {
		return err
	}
	found.Direction = r.direction
	for _, p := range s.Space {
		found.names = append(found.names, p.name)
	}
	if r.folder, err = openSearchFolder(files); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.folder.lock.Close()) }()
	var folder plan
	now := s.plan(r.direction)
	switch there, err := r.folder.read("search.json", &folder); {
	case err != nil:
		return err
	case there:
		if err := now.agree(folder); err != nil {
			return err
		}
	default:
		if err := r.folder.write("search.json", now); err != nil {
			return err
		}
	}
	return r.rungs(ctx)
}

// rungs makes the trials of all rungs that are missing.
func (r *searching) rungs(ctx context.Context) error {
	alive := make([]int, len(r.trials))
	for i := range alive {
		alive[i] = i
	}
	all := r.Method.rungs(len(r.trials))
	for level, of := range all {
		alive = alive[:min(len(alive), of.trials)]
		missing, last := []int(nil), level == len(all)-1
		for _, number := range alive {
			there, err := r.recorded(number, level)
			if err != nil {
				return err
			}
			if !there {
				missing = append(missing, number)
			}
		}
		r.tabulate()
		for _, number := range missing {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			record, err := r.trial(ctx, number, of.epochs)
			if err == nil {
				err = r.folder.write(recordOf(number, level), record)
			}
			if err != nil {
				return err
			}
			r.take(record)
			r.tabulate()
			if last || record.Failed != "" {
				if err := r.sweep(last); err != nil {
					return err
				}
			}
		}
		slices.SortFunc(alive, r.order)
		alive = slices.DeleteFunc(alive, func(number int) bool { return r.newest[number].Failed != "" })
	}
	if err := r.sweep(true); err != nil {
		return err
	}
	return r.end()
}

// end finds what only a whole search shows.
func (r *searching) end() error {
	if _, ok := r.found.Best(); !ok {
		return fmt.Errorf("all %d trials failed; trial %d: %s", len(r.found.Trials), r.found.Trials[0].Number, r.found.Trials[0].Failed)
	}
	for _, p := range r.Space {
		if !r.read[p.name] {
			return fmt.Errorf("no trial has read the parameter %q: Make is to ask for it, as by Float, or the space to be without it", p.name)
		}
	}
	return nil
}

// order is that of the table: the best first, those that failed last.
func (r *searching) order(a, b int) int {
	x, y := r.newest[a], r.newest[b]
	switch {
	case (x.Failed != "") != (y.Failed != ""):
		if x.Failed != "" {
			return 1
		}
		return -1
	case x.Failed == "" && r.direction.Better(x.Value, y.Value, 0):
		return -1
	case x.Failed == "" && r.direction.Better(y.Value, x.Value, 0):
		return 1
	}
	return a - b
}

func (r *searching) parametersOf(number int) map[string]any {
	values := map[string]any{}
	for i, p := range r.Space {
		values[p.name] = r.trials[number][i]
	}
	return values
}

func (r *searching) textsOf(number int) map[string]string {
	texts := map[string]string{}
	for name, v := range r.parametersOf(number) {
		texts[name] = inGo(v)
	}
	return texts
}

// recorded takes the record of a trial in a rung, if there is one.
func (r *searching) recorded(number, level int) (bool, error) {
	var record trialRecord
	there, err := r.folder.read(recordOf(number, level), &record)
	if err != nil || !there {
		return false, err
	}
	if want := r.textsOf(number); record.Number != number || !maps.Equal(record.Parameters, want) {
		return false, fmt.Errorf("the record %s is of trial %d with %v, expected trial %d with %v: it was drawn by another lazo", recordOf(number, level),
			record.Number, record.Parameters, number, want)
	}
	r.take(&record)
	return true, nil
}

func (r *searching) take(record *trialRecord) {
	r.newest[record.Number] = record
	for _, name := range record.Read {
		r.read[name] = true
	}
	if r.OnTrial != nil {
		r.OnTrial(r.row(record))
	}
}

func (r *searching) row(record *trialRecord) Trial {
	return Trial{Number: record.Number, Parameters: r.parametersOf(record.Number), Value: record.Value, Epoch: record.Epoch, Epochs: record.Epochs,
		Figures: maps.Clone(record.Figures), Failed: record.Failed}
}

func (r *searching) tabulate() {
	r.found.Trials = nil
	for _, number := range slices.SortedFunc(maps.Keys(r.newest), r.order) {
		r.found.Trials = append(r.found.Trials, r.row(r.newest[number]))
	}
}

// sweep takes away the files of trials that do not go on: their checkpoints, and in the last rung all models but the
// best.
func (r *searching) sweep(last bool) error {
	best, ok := r.found.Best()
	var errs []error
	for number, record := range r.newest {
		if last || record.Failed != "" {
			errs = append(errs, os.RemoveAll(filepath.Join(r.Dir, checkpointsOf(number))))
		}
		if record.Failed != "" || last && !(ok && number == best.Number) {
			errs = append(errs, os.RemoveAll(filepath.Join(r.Dir, modelOf(number))))
		}
	}
	return errors.Join(errs...)
}

// errOfSearch is an error that is the search's and not the trial's.
type errOfSearch struct{ error }

func (e errOfSearch) Unwrap() error { return e.error }

// trial trains a model until an epoch; 0 stands for what its Fit says.
func (r *searching) trial(ctx context.Context, number, epochs int) (*trialRecord, error) {
	record := &trialRecord{Number: number, Parameters: r.textsOf(number)}
	p := &Parameters{Number: number, values: r.parametersOf(number), read: map[string]bool{}}
	err := r.fit(ctx, p, epochs, record)
	record.Read = slices.Sorted(maps.Keys(p.read))
	of := errOfSearch{}
	switch {
	case p.err != nil:
		return nil, fmt.Errorf("trial %d: %w", number, p.err)
	case errors.As(err, &of):
		return nil, fmt.Errorf("trial %d: %w", number, of.error)
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		record.Value, record.Epoch, record.Epochs, record.Figures = 0, 0, 0, nil
		record.Failed = graphs.Inner(err).Error()
	}
	return record, nil
}

// fit makes the model and fits it, and has the record say what came of it.
func (r *searching) fit(ctx context.Context, p *Parameters, epochs int, record *trialRecord) (err error) {
	var m *Model
	var f Fit
	err = shield.Do(func() (err error) { m, f, err = r.Make(ctx, p); return err })
	if m == nil {
		if err == nil {
			err = errOfSearch{errors.New("the model of Make is nil")}
		}
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	if err == nil {
		err = p.err
	}
	if err != nil {
		return err
	}
	if err := r.fits(f, epochs); err != nil {
		return errOfSearch{err}
	}
	if epochs > 0 {
		f.Epochs = epochs
	}
	folder, err := checkpoint.Open(filepath.Join(r.Dir, checkpointsOf(p.Number)), checkpoint.Options{Keep: []checkpoint.Retention{checkpoint.Last(2)}})
	if err != nil {
		return errOfSearch{err}
	}
	f.Checkpoints = folder
	f.Callbacks = append(slices.Clone(f.Callbacks), callbacks.OnBest(r.Entry, r.direction, func(context.Context, loop.Report) error {
		if err := m.Save(filepath.Join(r.Dir, modelOf(p.Number))); err != nil {
			return errOfSearch{err}
		}
		return nil
	}))
	after := f.OnEpochEnd
	f.OnEpochEnd = func(epoch int, figures loop.Logs) error {
		for _, name := range []string{trained, r.Entry} {
			if v, err := figures.Float(name); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				return fmt.Errorf("%s is %v in epoch %d", name, v, epoch)
			}
		}
		if after == nil {
			return nil
		}
		return after(epoch, figures)
	}
	history, err := m.Fit(ctx, r.Training, f)
	if closeErr := folder.Close(); err == nil && closeErr != nil {
		err = errOfSearch{closeErr}
	}
	if err != nil {
		return err
	}
	return record.of(history, r.Entry, r.direction)
}

// fits refuses settings of a Fit that are the search's.
func (r *searching) fits(f Fit, epochs int) error {
	switch {
	case f.Checkpoints != nil || f.InitialEpoch != 0 || f.EachStep || f.FastDevRun:
		return errors.New("the Fit has Checkpoints, an InitialEpoch, EachStep or FastDevRun, which are not for a search: it saves the trials itself, by epochs")
	case epochs > 0 && (f.Epochs != 0 || f.Until != nil):
		return fmt.Errorf("the Fit has Epochs or Until, and %v says how many epochs there are: leave them out", r.Method)
	}
	return nil
}

// of takes the best epoch of a history.
func (t *trialRecord) of(history *loop.History, entry string, direction loop.Mode) error {
	best := direction.Worst()
	for _, logs := range history.Rows() {
		epoch, err := logs.Float(epochEntry)
		if err != nil {
			continue
		}
		t.Epochs = int(epoch)
		v, err := logs.Float(entry)
		if err != nil || !direction.Better(v, best, 0) {
			continue
		}
		best, t.Value, t.Epoch = v, v, int(epoch)
		t.Figures = map[string]float64{}
		for e := range logs.All() {
			if _, whole := e.Value.(loop.Payload); whole || e.Collection != loop.Losses && e.Collection != loop.Metrics {
				continue
			}
			if v, err := e.Value.Float(); err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Figures[e.Name] = v
			}
		}
	}
	if t.Epoch == 0 {
		return fmt.Errorf("no epoch of %d has a finite %q", t.Epochs, entry)
	}
	return nil
}
