package selection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/callbacks"
	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/internal/abilities"
	"github.com/lazo-ml/lazo/internal/better"
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/shield"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

type trialRecord struct {
	Number     int                `json:"trial"`
	Parameters map[string]string  `json:"parameters"`
	Value      float64            `json:"value"`
	Epoch      int                `json:"epoch"`
	Epochs     int                `json:"epochs"`
	Figures    map[string]float64 `json:"figures,omitempty"`
	Failed     string             `json:"failed,omitempty"`
	Pruned     bool               `json:"pruned,omitempty"`
	Values     map[int]float64    `json:"values,omitempty"` // of the entry by epoch, with PruneAfter
	Read       []string           `json:"read,omitempty"`
	Fit        map[string]string  `json:"fit,omitempty"` // nil in older records

	began bool
	err   error // Failed as an error, which a read record lacks
}

func modelOf(number int) string       { return fmt.Sprintf("trial-%04d.safetensors", number) }
func drawnOf(number int) string       { return fmt.Sprintf("trial-%04d-drawn.json", number) }
func lockOf(number int) string        { return fmt.Sprintf("trial-%04d%s", number, lockSuffix) }
func checkpointsOf(number int) string { return fmt.Sprintf("trial-%04d-checkpoints", number) }
func recordOf(number, rung int) string {
	return fmt.Sprintf("trial-%04d-%d.json", number, rung)
}

const lockSuffix = ".lock"

type searching struct {
	Search
	folder    *folder
	direction loop.Mode
	trials    [][]any         // nil is not drawn
	files     map[string]bool // in the folder, when a trial was chosen: one list costs less than a look for each trial
	rungs     []rung
	records   []map[int]*trialRecord // by rung
	newest    map[int]*trialRecord
	read      map[string]bool
	found     *Result
	failed    []string
	compared  bool
}

func (s Search) run(ctx context.Context, files vfs.FS, found *Result) (err error) {
	r := searching{Search: s, newest: map[int]*trialRecord{}, read: map[string]bool{}, found: found}
	if r.direction, err = directionOf(s.Entry, s.Direction); err != nil {
		return err
	}
	if r.trials, err = s.method().valuesOf(s.Space, s.Seed); err != nil {
		return err
	}
	found.Direction = r.direction
	for _, p := range s.Space {
		found.names = append(found.names, p.Name)
	}
	r.rungs = r.method().rungs(len(r.trials))
	for range r.rungs {
		r.records = append(r.records, map[int]*trialRecord{})
	}
	r.folder = &folder{files}
	if err := r.alone(ctx, func() error { return r.begin(files) }); err != nil {
		return err
	}
	return r.work(ctx)
}

func (r *searching) begin(files vfs.FS) error {
	var folder plan
	now := r.plan(r.direction)
	there, err := r.folder.read("search.json", &folder)
	if err != nil || !there {
		return cmp.Or(err, r.folder.write("search.json", now))
	}
	err = now.agree(folder)
	if err == nil {
		return nil
	}
	if begun, listErr := r.begun(); begun || listErr != nil {
		return errors.Join(err, listErr)
	}
	return errors.Join(files.Remove("search.json"), r.folder.write("search.json", now))
}

func (r *searching) begun() (bool, error) {
	entries, err := os.ReadDir(r.Dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "trial-") && !strings.HasSuffix(e.Name(), lockSuffix)
	}), err
}

func (r *searching) end() error {
	if _, ok := r.found.Best(); !ok {
		err := fmt.Errorf("all %d trials failed; trial %d: %w", len(r.found.Trials), r.found.Trials[0].Number, r.found.Trials[0].Err)
		if n := len(r.failed); n > 0 {
			files := strings.Join(r.failed[:min(n, 8)], ", ")
			if n > 8 {
				files += fmt.Sprintf(" and %d more", n-8)
			}
			err = fmt.Errorf("%w\n  %d of them were not run now, but are records of the folder: remove these files to run the trials again: %s", err, n, files)
		}
		return err
	}
	for _, p := range r.Space {
		if !r.read[p.Name] {
			return fmt.Errorf("no trial has read the parameter %q: read it in Make, as by Float, or remove it from the space", p.Name)
		}
	}
	return nil
}

func (r *searching) order(of map[int]*trialRecord, a, b int) int {
	x, y := of[a], of[b]
	switch {
	case (x.Failed != "") != (y.Failed != ""):
		if x.Failed != "" {
			return 1
		}
		return -1
	case x.Failed == "" && better.Than(r.direction, x.Value, y.Value, 0):
		return -1
	case x.Failed == "" && better.Than(r.direction, y.Value, x.Value, 0):
		return 1
	}
	return a - b
}

func (r *searching) parametersOf(number int) map[string]any {
	values := map[string]any{}
	for i, p := range r.Space {
		values[p.Name] = r.trials[number][i]
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

func (r *searching) recorded(number, level int) (bool, error) {
	if r.records[level][number] != nil {
		return true, nil
	}
	var record trialRecord
	if !r.files[recordOf(number, level)] {
		return false, nil
	}
	there, err := r.folder.read(recordOf(number, level), &record)
	if err == nil && there && r.trials[number] == nil {
		_, err = r.readDrawn(number)
	}
	if err != nil || !there {
		return false, err
	}
	if want := r.textsOf(number); record.Number != number || !maps.Equal(record.Parameters, want) {
		return false, fmt.Errorf("the record %s is of trial %d with %v, expected trial %d with %v: it was drawn by another version of lazo", recordOf(number, level),
			record.Number, record.Parameters, number, want)
	}
	if record.Failed != "" {
		r.failed = append(r.failed, recordOf(number, level))
	}
	r.take(&record, level)
	return true, nil
}

func (r *searching) take(record *trialRecord, level int) {
	r.records[level][record.Number], r.newest[record.Number] = record, record
	for _, name := range record.Read {
		r.read[name] = true
	}
	if r.OnTrial != nil {
		r.OnTrial(r.row(record))
	}
}

func (r *searching) row(record *trialRecord) Trial {
	err := record.err
	if err == nil && record.Failed != "" {
		err = errors.New(record.Failed)
	}
	return Trial{Number: record.Number, Parameters: r.parametersOf(record.Number), Value: record.Value, Epoch: record.Epoch, Epochs: record.Epochs,
		Figures: maps.Clone(record.Figures), Pruned: record.Pruned, Err: err}
}

func (r *searching) tabulate() {
	r.found.Trials = nil
	for _, number := range slices.SortedFunc(maps.Keys(r.newest), func(a, b int) int { return r.order(r.newest, a, b) }) {
		r.found.Trials = append(r.found.Trials, r.row(r.newest[number]))
	}
}

// sweep removes the files of trials that do not continue. Other processes may train further ones.
func (r *searching) sweep(all bool) error {
	best, ok := r.found.Best()
	var errs []error
	for number, record := range r.newest {
		ended := all || record.Failed != "" || r.records[len(r.rungs)-1][number] != nil
		if ended {
			errs = append(errs, os.RemoveAll(filepath.Join(r.Dir, checkpointsOf(number))))
		}
		if ended && (record.Failed != "" || !(ok && number == best.Number)) {
			errs = append(errs, os.RemoveAll(filepath.Join(r.Dir, modelOf(number))))
		}
	}
	return errors.Join(errs...)
}

// errOfSearch ends the search.
type errOfSearch struct{ error }

func (e errOfSearch) Unwrap() error { return e.error }

func (r *searching) trial(ctx context.Context, number, epochs int) (*trialRecord, error) {
	record := &trialRecord{Number: number, Parameters: r.textsOf(number)}
	p := &Parameters{Number: number, values: r.parametersOf(number), read: map[string]bool{}}
	checkpoints := filepath.Join(r.Dir, checkpointsOf(number))
	_, statErr := os.Stat(checkpoints)
	err := r.fit(ctx, p, epochs, record)
	if of := (errOfSearch{}); errors.As(err, &of) && !record.began && errors.Is(statErr, fs.ErrNotExist) {
		err = errOfSearch{errors.Join(of.error, os.RemoveAll(checkpoints))}
	}
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
		record.err = graphs.Inner(err)
		record.Failed = record.err.Error()
	}
	return record, nil
}

func (r *searching) compare(ctx context.Context) error {
	if r.compared {
		return nil
	}
	r.compared = true
	for _, number := range slices.Sorted(maps.Keys(r.newest)) {
		if r.newest[number].Fit == nil {
			continue
		}
		p := &Parameters{Number: number, values: r.parametersOf(number), read: map[string]bool{}}
		m, f, err := r.make(ctx, p)
		if m != nil {
			err = errors.Join(err, m.Close())
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("trial %d, of which the folder has a record, is run again to compare its Fit: %w", number, graphs.Inner(err))
		}
		return r.agrees(number, f)
	}
	return nil
}

func (r *searching) agrees(number int, f flaxlike.Fit) error {
	record := r.newest[number]
	if record == nil || record.Fit == nil {
		return nil
	}
	now := inWords(f)
	names := slices.AppendSeq(slices.Collect(maps.Keys(now)), maps.Keys(record.Fit))
	slices.Sort(names)
	for _, name := range names {
		if now, then := cmp.Or(now[name], "nothing"), cmp.Or(record.Fit[name], "nothing"); now != then {
			return fmt.Errorf("trial %d: %s of Make's Fit is %s, and was %s when the folder's record was made\n  use another folder for another Fit", number, name, now, then)
		}
	}
	return nil
}

func inWords(f flaxlike.Fit) map[string]string {
	words := map[string]string{"Epochs": fmt.Sprint(f.Epochs)}
	for name, n := range map[string]int{"BatchSize": f.BatchSize, "StepsPerEpoch": f.StepsPerEpoch, "OverfitBatches": f.OverfitBatches,
		"ValidationEvery": f.ValidationEvery, "ValidationSteps": f.ValidationSteps} {
		if n != 0 {
			words[name] = fmt.Sprint(n)
		}
	}
	if f.Until != nil {
		words["Until"] = fmt.Sprint(f.Until)
	}
	if f.InOrder {
		words["InOrder"] = "true"
	}
	if f.ValidationSplit != 0 {
		words["ValidationSplit"] = inGo(f.ValidationSplit)
	}
	if f.Validation != nil && f.Validation.Len() > 0 {
		words["Validation"] = fmt.Sprintf("a set of %d examples with the checksum %s", f.Validation.Len(), contentOf(f.Validation))
	}
	return words
}

func (r *searching) make(ctx context.Context, p *Parameters) (m *flaxlike.Model, f flaxlike.Fit, err error) {
	err = shield.Do(func() (err error) { m, f, err = r.Make(ctx, p); return err })
	switch {
	case err == nil && m == nil:
		err = errOfSearch{errors.New("the model of Make is nil")}
	case err == nil:
		err = p.err
	}
	return m, f, err
}

func (r *searching) fit(ctx context.Context, p *Parameters, epochs int, record *trialRecord) (err error) {
	m, f, err := r.make(ctx, p)
	if m != nil {
		defer func() { err = errors.Join(err, m.Close()) }()
	}
	if err != nil {
		return err
	}
	if err = r.fits(f, epochs); err == nil {
		err = r.agrees(p.Number, f)
	}
	if err != nil {
		return errOfSearch{err}
	}
	record.Fit = inWords(f)
	if epochs > 0 {
		f.Epochs = epochs
	}
	folder, err := checkpoint.Open(filepath.Join(r.Dir, checkpointsOf(p.Number)), checkpoint.Options{Keep: []checkpoint.Retention{{Last: 2}}})
	if err != nil {
		return errOfSearch{err}
	}
	limits := r.limits()
	epochEnd := loop.Watch(loop.Every(loop.Epochs(1)), func(_ context.Context, report loop.Report) error {
		record.began = true
		for _, name := range []string{"loss", r.Entry} {
			if v, err := report.Logs.Float(name); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				return fmt.Errorf("%s is %v in epoch %d: %w", name, v, report.Elapsed.Epochs, loop.ErrNonFinite)
			}
		}
		return r.prune(report, limits, record)
	})
	f.Callbacks = append(append([]loop.Option{epochEnd}, f.Callbacks...), callbacks.OnBest(r.Entry, func(context.Context, loop.Report) error {
		if err := m.Save(filepath.Join(r.Dir, modelOf(p.Number))); err != nil {
			return errOfSearch{err}
		}
		return nil
	}, callbacks.Monitor{Mode: r.direction}), folder.Resume(checkpoint.Every(loop.Epochs(1))))
	history, err := m.Fit(ctx, r.Training, f)
	if closeErr := folder.Close(); err == nil && closeErr != nil {
		err = errOfSearch{closeErr}
	}
	if !record.began && errors.Is(err, loop.ErrNoEntry) { // all trials would fail
		err = errOfSearch{err}
	}
	if err != nil {
		return err
	}
	if err := record.of(history, r.Entry, r.direction); err != nil || r.PruneAfter > 0 {
		return err
	}
	record.Values = nil
	return nil
}

func resumes(option loop.Option) bool {
	plan, err := loop.Loop[*flaxlike.Model, data.Batch]{}.Plan(option)
	return err == nil && slices.Contains(plan.Prepares, abilities.Resume)
}

func (r *searching) fits(f flaxlike.Fit, epochs int) error {
	switch {
	case slices.ContainsFunc(f.Callbacks, resumes) || f.InitialEpoch != 0 || f.EachStep || f.FastDevRun:
		return errors.New("the Fit has checkpoint.Resume, an InitialEpoch, EachStep or FastDevRun, which a search does not support: it saves the trials itself, by epochs")
	case epochs > 0 && (f.Epochs != 0 || f.Until != nil):
		return errors.New("the Fit has Epochs or Until, but FirstEpochs and Factor set the number of epochs: leave them out")
	}
	return nil
}

const epochEntry = "progress.epoch"

func (t *trialRecord) of(history *loop.History, entry string, direction loop.Mode) error {
	best := better.Worst(direction)
	t.Values = map[int]float64{}
	for _, logs := range history.Rows() {
		epoch, err := logs.Float(epochEntry)
		if err != nil {
			continue
		}
		t.Epochs = int(epoch)
		v, err := logs.Float(entry)
		if err != nil {
			continue
		}
		if t.Values[t.Epochs] = v; !better.Than(direction, v, best, 0) {
			continue
		}
		best, t.Value, t.Epoch = v, v, int(epoch)
		t.Figures = map[string]float64{}
		for e := range logs.All() {
			if !e.IsNumber() || e.Path() == epochEntry {
				continue
			}
			v, err := e.Value.Float()
			if err != nil {
				return fmt.Errorf("%s: %w", e.Path(), err)
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Figures[e.Name] = v
			}
		}
	}
	if t.Epoch == 0 {
		return fmt.Errorf("no epoch of %d has a finite %q", t.Epochs, entry)
	}
	return nil
}
