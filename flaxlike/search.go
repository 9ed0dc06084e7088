package flaxlike

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
	"github.com/lazo-ml/lazo/internal/graphs"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Search looks for the parameters with which a model trains best.
type Search struct {
	// Space are the parameters.
	Space []Parameter
	// Trials is how many are made, no two the same. Seed draws them: the trials of a seed are the same whatever ran
	// before.
	Trials int
	Seed   uint64
	// Grid, in place of Trials, tries all products of the parameters' values: of a range so many points, evenly from end
	// to end, or its integers if these are not more.
	Grid int
	// FirstEpochs and Factor halve the Trials successively (Jamieson and Talwalkar, 2016): each is trained for the first
	// epochs; then the best Trials/Factor of them, rounded down, go on to Factor times as many epochs, and so on until it
	// would be none. A trial that goes on is the same model, with the same optimizer and order of examples as if it had
	// never stopped. Of trials that are as good the one drawn first goes on.
	FirstEpochs, Factor int
	// Entry is what decides, a figure of Fit's history, as "val_loss": a trial has the best value of its epochs, and
	// the model of that epoch. Direction says which is better; the zero [loop.Mode] knows losses, errors and the
	// metrics by name, and is an error for others.
	Entry     string
	Direction loop.Mode
	// Training is what each model is trained on.
	Training *data.Set
	// Make gives the model of a trial, a new one each time, and how to fit it. The search does so, and closes it. With
	// FirstEpochs it is called each time a trial goes on, and Epochs and Until must not be set. Checkpoints,
	// InitialEpoch, EachStep and FastDevRun are not for a search. A search that goes on in its folder calls it once
	// more for a trial that is there, to see that its Fit is the same.
	Make func(ctx context.Context, p *Parameters) (*Model, Fit, error)
	// Dir is the folder of the search, which is made if it is not there: a record of each trial that ended
	// (but see Run about those that fail), its checkpoints while it goes on, and the best model. A search that ended or
	// was killed, started again with the same settings, makes what is missing and comes to the same table.
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

// SearchResult is what a search found.
type SearchResult struct {
	Entry     string
	Direction loop.Mode // Lowest or Highest
	// Trials are those that ended, the best first; those that failed stand last.
	Trials []Trial

	names []string // of the parameters
	dir   string
}

// Best is the best trial; false where none has a value.
func (s *SearchResult) Best() (Trial, bool) {
	if len(s.Trials) == 0 || s.Trials[0].Failed != "" {
		return Trial{}, false
	}
	return s.Trials[0], true
}

// Path is the file of the best trial's model, "" where there is none.
func (s *SearchResult) Path() string {
	best, ok := s.Best()
	if !ok {
		return ""
	}
	return filepath.Join(s.dir, modelOf(best.Number))
}

// Open opens the best trial's model, as [Open] does.
func (s *SearchResult) Open(ctx context.Context, options ...Option) (*Model, error) {
	if s.Path() == "" {
		return nil, errors.New("flaxlike: search: no trial has a value, so there is no best model")
	}
	return Open(ctx, s.Path(), options...)
}

// rows are a line of titles and one for each trial.
func (s *SearchResult) rows(number func(float64) string) (rows [][]string) {
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
func (s *SearchResult) String() string {
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
func (s *SearchResult) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(s.rows(func(v float64) string { return inGo(v) })); err != nil {
		return fmt.Errorf("flaxlike: search: %w", err)
	}
	return nil
}

// Run makes the trials that are missing, one after the other, and gives the table of all. A trial that fails, by an
// error or a panic of Make or Fit, or because a loss or the entry is not finite, stands in it with its reason, and
// the search goes on; so it is when the search is run again, unless its record is taken away. One that failed before
// its first epoch ended has no record, and is tried again then. It is an error if all fail.
//
// Errors that end the search: another space, method, seed, entry or training set than the folder's, which is named, as
// is another Fit (Epochs, BatchSize, the validation set, …) of the same parameters; an entry, the search's or a
// callback's, that the Fit does not log; a name that Make reads and the space lacks; parameters that no trial has read;
// a record that is damaged or cannot be written; and a context that ends, with its cause. The table has the trials
// until then. Of sets a sample is compared, as data.Deal has it.
func (s Search) Run(ctx context.Context) (*SearchResult, error) {
	found := &SearchResult{Entry: s.Entry, dir: s.Dir}
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
	return s.checkMethod()
}

// directionOf is that of an entry. A guess would have the worst trial for the best.
func directionOf(entry string, given loop.Mode) (loop.Mode, error) {
	if err := given.Against(entry); err != nil {
		return given, fmt.Errorf("field Direction: %w", err)
	}
	mode, err := given.Of(entry)
	if given == 0 && err != nil {
		err = fmt.Errorf("%w: set Direction to loop.Highest or loop.Lowest", err)
	}
	return mode, err
}

// setting is a line of what a search is.
type setting struct{ Name, Value string }

// plan is what a folder must agree with.
type plan struct {
	Version  int
	Settings []setting
}

const searchVersion = 1

// contentSetting is the name of the checksum of what is trained on. Folders of before it have none.
const contentSetting = "The checksum of examples of Training"

// contentOf is the checksum of a sample of a set ([data.Deal]), "" where its batches do not tell.
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
	if content := contentOf(s.Training); content != "" {
		p.Settings = append(p.Settings, setting{contentSetting, content})
	}
	for _, parameter := range s.Space {
		p.Settings = append(p.Settings, setting{fmt.Sprintf("Space, %q", parameter.Name), parameter.setting()})
	}
	return p
}

// agree names the first difference between what a folder's search is and this one.
func (p plan) agree(folder plan) error {
	if folder.Version != p.Version {
		return fmt.Errorf("the folder is of version %d, expected %d: it was written by another lazo", folder.Version, p.Version)
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
			return fmt.Errorf("%s is %s, and that of the folder's search %s\n  take another folder for another search", s.Name, now, then)
		}
	}
	if !slices.Equal(p.Settings, folder.Settings) {
		return errors.New("the parameters of Space stand in another order than in the folder's search\n  take another folder for another search")
	}
	return nil
}
