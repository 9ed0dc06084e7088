package runs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lazo-ml/lazo/internal/regular"
)

type Place struct {
	// Name is the folder or file below that of Find, with slashes; of Find's folder itself its last element.
	Name string

	inside string   // the run's own folder, or "" of one file
	saves  []string // folders of checkpoints
	rows   []string
	events []string // folders of tensorboard.Write
	search string
}

func (p *Place) add(o Place) {
	p.saves, p.rows, p.events = append(p.saves, o.saves...), append(p.rows, o.rows...), append(p.events, o.events...)
}

// one reports whether one run may have written the files: at most one of each kind, but any number of rows with
// checkpoints.
func (p *Place) one() bool {
	stems := map[string]bool{}
	for _, path := range p.rows {
		stems[stemOf(path)] = true
	}
	return len(p.saves) <= 1 && len(p.events) <= 1 && (len(stems) <= 1 || len(p.saves) == 1)
}

var rotatedForm = regexp.MustCompile(`^(.*\.[^./\\]*[^0-9./\\][^./\\]*)\.(\d{1,4})$`)

// rotated returns the name before logrotate added a number: log.jsonl of log.jsonl.1.
func rotated(path string) (before string, number int) {
	m := rotatedForm.FindStringSubmatch(path)
	if m == nil {
		return path, 0
	}
	number, _ = strconv.Atoi(m[2])
	return m[1], number
}

func stemOf(path string) string {
	before, _ := rotated(path)
	return strings.TrimSuffix(before, filepath.Ext(before))
}

type folder struct {
	path  string
	own   Place // files directly in it
	inner []*folder
}

func (f *folder) all() Place {
	p := f.own
	for _, sub := range f.inner {
		p.add(sub.all())
	}
	return p
}

// Find lists the runs in a folder and those below it. A folder with records is one run, with all records below it, if
// they have at most one folder of checkpoints, one of events and one file of rows. Otherwise each is a run.
func Find(ctx context.Context, root string) (places []Place, files int, err error) {
	places, files, err = find(ctx, root)
	return slices.DeleteFunc(places, func(p Place) bool { return p.search != "" }), files, err
}

func find(ctx context.Context, root string) (places []Place, files int, err error) {
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, 0, err
	}
	s := searching{ctx: ctx}
	top, err := s.folder(root)
	if err != nil {
		return nil, s.files, err
	}
	places = top.runs(nil)
	for _, dir := range s.searches {
		places = append(places, Place{Name: dir, search: dir})
	}
	for i := range places {
		name, err := filepath.Rel(root, places[i].Name)
		if err != nil {
			return nil, s.files, err
		}
		if name == "." {
			whole, err := filepath.Abs(root)
			if err != nil {
				return nil, s.files, err
			}
			name = filepath.Base(whole)
		}
		places[i].Name = filepath.ToSlash(name)
	}
	slices.SortFunc(places, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return places, s.files, nil
}

func (f *folder) runs(found []Place) []Place {
	own := f.own
	if len(own.saves)+len(own.rows)+len(own.events) > 0 {
		all := f.all()
		if all.one() {
			all.Name, all.inside = f.path, filepath.ToSlash(f.path)+"/"
			return append(found, all)
		}
		if len(own.saves)+len(own.events) > 0 && own.one() {
			own.Name, own.inside = f.path, filepath.ToSlash(f.path)+"/"
			found = append(found, own)
		} else { // files of rows without checkpoints
			byStem := map[string]*Place{}
			var stems []string
			for _, path := range own.rows {
				stem := stemOf(path)
				if byStem[stem] == nil {
					byStem[stem] = &Place{Name: path}
					stems = append(stems, stem)
				}
				byStem[stem].rows = append(byStem[stem].rows, path)
			}
			for _, stem := range stems {
				found = append(found, *byStem[stem])
			}
			if len(own.events) > 0 {
				found = append(found, Place{Name: f.path, events: own.events})
			}
		}
	}
	for _, sub := range f.inner {
		found = sub.runs(found)
	}
	return found
}

type searching struct {
	ctx   context.Context
	files int

	searches []string
}

var checkpointForm = regexp.MustCompile(`^step-\d{12,19}(\.\d{1,9})?$`)

const (
	eventPrefix = "events.out.tfevents."
	training    = "train"
)

func (s *searching) folder(path string) (*folder, error) {
	if s.ctx.Err() != nil {
		return nil, context.Cause(s.ctx)
	}
	f := &folder{path: path}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	saves, events := false, false
	for _, e := range entries {
		name := e.Name()
		inside := filepath.Join(path, name)
		switch {
		case strings.HasPrefix(name, "."):
		case e.IsDir() && checkpointForm.MatchString(name):
			saves = true
		case e.IsDir():
			sub, err := s.folder(inside)
			if err != nil {
				return nil, err
			}
			f.inner = append(f.inner, sub)
		case !e.Type().IsRegular():
		case name == planFile:
			s.searches = append(s.searches, path)
		case name == "LOCK":
			s.files, saves = s.files+1, true
		case strings.HasPrefix(name, eventPrefix):
			s.files, events = s.files+1, true
		default:
			s.files++
			is, err := isRows(inside)
			if err != nil {
				return nil, err
			}
			if is {
				f.own.rows = append(f.own.rows, inside)
			}
		}
	}
	if saves {
		f.own.saves = []string{path}
	}
	if i := slices.IndexFunc(f.inner, func(sub *folder) bool { return filepath.Base(sub.path) == training && sub.own.events != nil }); i >= 0 {
		events = true // the folders of evaluations are of the same run
		for _, sub := range f.inner {
			sub.own.events = nil
		}
	}
	if events {
		f.own.events = []string{path}
	}
	return f, nil
}

func isRows(path string) (bool, error) {
	file, err := regular.Open(path, os.O_RDONLY, 0)
	if os.IsNotExist(err) || os.IsPermission(err) { // removed meanwhile, or nothing of this user's
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	begin := make([]byte, len(jsonStart))
	n, err := io.ReadFull(file, begin)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return bytes.HasPrefix(begin[:n], []byte(jsonStart)) || bytes.HasPrefix(begin[:n], []byte(csvStart)), nil
}

const (
	csvStart  = "elapsed.steps"
	jsonStart = `{"` + csvStart + `":`
)
