package runs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/checkpoint"
	"github.com/lazo-ml/lazo/data/files"
	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// Sink takes what a [Follower] reads of a run. Rows of a source come in order; if their steps decrease, the earlier
// rows from there on are void.
type Sink interface {
	Row(source string, at loop.Elapsed, columns []string, numbers []float64)
	Rewind(source string, step int64)
	// Describe sets settings, unless nil, and status; err has the errors of the newest reads.
	Describe(status checkpoint.RunStatus, why string, settings map[string]string, err error)
	Log(text string)
	Search(s *Search)
}

// Follower reads a folder's runs while their programs write them. It reads each part of a file once.
type Follower struct {
	root string
	log  *slog.Logger
	add  func(name string) Sink
	gone func(name string)
	runs map[string]*followed
}

func NewFollower(root string, add func(name string) Sink, gone func(name string), log *slog.Logger) *Follower {
	return &Follower{root: root, add: add, gone: gone, log: log, runs: map[string]*followed{}}
}

type followed struct {
	place  Place
	sink   Sink
	rows   map[string]*tail
	events map[string]*tail
	logs   map[string]*tail
	saves  map[string]*saved
	run    Run
	begun  bool
	logged *events
	trials map[string]trial
	stamp  time.Time // of the search's folder
}

func (f *Follower) Find(ctx context.Context) error {
	places, _, err := find(ctx, f.root)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, p := range places {
		if p.search != "" {
			p.Name += " (search)"
		}
		there[p.Name] = true
		if r := f.runs[p.Name]; r != nil {
			r.place = p
			continue
		}
		f.runs[p.Name] = &followed{place: p, sink: f.add(p.Name), rows: map[string]*tail{}, events: map[string]*tail{}, logs: map[string]*tail{}, saves: map[string]*saved{}, logged: newEvents(), trials: map[string]trial{}}
	}
	for name := range f.runs {
		if !there[name] {
			delete(f.runs, name)
			f.gone(name)
		}
	}
	return nil
}

func (f *Follower) Read(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(f.runs)) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		f.runs[name].read(ctx, f.log)
	}
	return nil
}

func (r *followed) read(ctx context.Context, log *slog.Logger) {
	before := r.run
	if r.place.search != "" {
		r.readTrials()
		return
	}
	r.run.Err = nil
	note := func(err error) { r.run.Err = errors.Join(r.run.Err, err) }
	for _, path := range slices.SortedFunc(slices.Values(r.place.rows), oldestFirst) {
		source, number := rotated(path)
		if number > 0 && r.begun { // read under its first name
			continue
		}
		t := tailOf(r.rows, path)
		note(t.read(func(in io.Reader, json bool) error { return r.takeRows(source, t.info.ModTime(), in, json) }))
	}
	r.begun = true
	for _, dir := range r.place.saves {
		note(r.save(ctx, dir, log))
	}
	// Else the same values with fewer digits.
	note(r.allEvents(len(r.place.rows)+len(r.place.saves) == 0))
	note(r.allLogs())
	if before.Status != r.run.Status || before.Why != r.run.Why || fmt.Sprint(before.Err) != fmt.Sprint(r.run.Err) || !maps.Equal(before.Settings, r.run.Settings) {
		r.sink.Describe(r.run.Status, r.run.Why, r.run.Settings, r.run.Err)
	}
}

// clockTick is above the resolution of file times: a folder may change twice in one.
const clockTick = 2 * time.Second

// readTrials reads new records: each is written whole, under a name of its own.
func (r *followed) readTrials() {
	info, err := os.Stat(r.place.search)
	if err != nil || info.ModTime().Equal(r.stamp) {
		return
	}
	if time.Since(info.ModTime()) > clockTick {
		r.stamp = info.ModTime()
	}
	s, err := readSearch(r.place.search, r.trials)
	if s != nil {
		r.sink.Search(s)
	}
	r.sink.Describe("", "", nil, err)
}

func oldestFirst(a, b string) int {
	first, m := rotated(a)
	second, n := rotated(b)
	return cmp.Or(strings.Compare(first, second), cmp.Compare(n, m))
}

func (r *followed) takeRows(source string, written time.Time, in io.Reader, json bool) error {
	read := records.ReadCSV
	if json {
		read = records.ReadJSON
	}
	return read(in, func(row *records.Row) error {
		if err := row.Check(); err != nil {
			return err
		}
		r.row(source, loop.Elapsed{Steps: row.Steps, Samples: row.Samples, Epochs: row.Epochs, Time: row.Time, Date: loop.Date(cmp.Or(row.Date, written.UnixNano()))}, row.Columns, row.Numbers)
		return nil
	})
}

func (r *followed) row(source string, at loop.Elapsed, columns []string, numbers []float64) {
	var names []string
	var values []float64
	for i, name := range columns {
		if !strings.HasPrefix(name, progress+".") {
			names, values = append(names, name), append(values, numbers[i])
		}
	}
	r.sink.Row(source, at, names, values)
}

type saved struct {
	info  fs.FileInfo
	at    time.Time
	took  time.Duration
	steps int64
	err   error
}

// lockTime is the time after which a run's lock is looked at again: the end of a killed process leaves no other trace.
const lockTime = 5 * time.Second

// save reads a folder of checkpoints when it has changed, a tenth of the time at most.
func (r *followed) save(ctx context.Context, dir string, log *slog.Logger) error {
	info, err := os.Stat(dir)
	if err != nil {
		return wrapped(dir, err)
	}
	was := r.saves[dir]
	if was != nil {
		since := time.Since(was.at)
		same := os.SameFile(was.info, info) && was.info.ModTime().Equal(info.ModTime())
		if since < 10*was.took || same && (r.run.Status != checkpoint.Running || since < lockTime) {
			return was.err
		}
	}
	now := &saved{info: info, at: time.Now(), steps: -1}
	if was != nil {
		now.steps = was.steps
	}
	now.err = r.load(ctx, dir, log, now)
	now.took, r.saves[dir] = time.Since(now.at), now
	return now.err
}

func (r *followed) load(ctx context.Context, dir string, log *slog.Logger, now *saved) (err error) {
	f, err := checkpoint.Open(dir, checkpoint.Options{ReadOnly: true, Log: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	saved, err := f.Run(ctx)
	if err != nil {
		return err
	}
	r.run.Status, r.run.Why, r.run.Settings = saved.Status, saved.Why, saved.Settings
	if now.steps == saved.Elapsed.Steps && saved.Status == checkpoint.Running {
		return nil
	}
	now.steps = saved.Elapsed.Steps
	r.sink.Rewind(dir, 0)
	for at, logs := range saved.History.Rows() {
		var names []string
		var values []float64
		for e := range logs.All() {
			if x, err := e.Value.Float(); err == nil {
				names, values = append(names, e.Path()), append(values, x)
			}
		}
		r.row(dir, at, names, values)
	}
	r.row(dir, saved.Elapsed, nil, nil)
	return nil
}

func (r *followed) allEvents(values bool) error {
	for _, dir := range r.place.events {
		if err := r.eventsOf(dir, ""); err != nil {
			return err
		}
		inner, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, sub := range inner {
			if sub.IsDir() && values {
				if err := r.eventsOf(filepath.Join(dir, sub.Name()), sub.Name()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *followed) eventsOf(dir, name string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries { // in order of their time
		if !entry.Type().IsRegular() || !strings.HasPrefix(entry.Name(), eventPrefix) {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		if err := tailOf(r.events, path).readEvents(func(event message) { r.event(dir, name, event) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *followed) event(dir, name string, event message) {
	step := int64(event.number(stepField))
	if event.bytes(sessionField) != nil { // hides the steps of earlier files from here on
		r.sink.Rewind(dir, step)
		return
	}
	r.logged.value = func(path string, step int64, x float64) {
		took := max(0, r.logged.last-r.logged.first)
		at := loop.Elapsed{Steps: step, Time: time.Duration(took * float64(time.Second)), Date: loop.Date(r.logged.last * float64(time.Second))}
		r.row(dir, at, []string{path}, []float64{x})
	}
	r.logged.add(name, event, math.MaxInt64)
	if len(r.place.saves) == 0 {
		r.run.Status, r.run.Settings = r.logged.status, maps.Clone(r.logged.settings)
	}
}

const mostOfLogs = 64 << 10

// allLogs follows the files *.log of the run's folder, from their last 64 kB on.
func (r *followed) allLogs() error {
	for _, dir := range r.place.folders() {
		paths, err := filepath.Glob(filepath.Join(escapeGlob(dir), "*.log"))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if slices.Contains(r.place.rows, path) {
				continue
			}
			if err := tailOf(r.logs, path).readLog(r.sink.Log); err != nil {
				return err
			}
		}
	}
	return nil
}

var escapeGlob = strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace

func (p *Place) folders() (dirs []string) {
	for _, path := range p.rows {
		dirs = append(dirs, filepath.Dir(path))
	}
	dirs = append(append(dirs, p.saves...), p.events...)
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	return slices.DeleteFunc(dirs, func(dir string) bool {
		return p.inside == "" || !strings.HasPrefix(filepath.ToSlash(dir)+"/", p.inside)
	})
}

func tailOf(all map[string]*tail, path string) *tail {
	if all[path] == nil {
		all[path] = &tail{path: path}
	}
	return all[path]
}

// tail is a file that grows. It is read again from its start if another file has its name, or if its read part has
// changed.
type tail struct {
	path   string
	info   fs.FileInfo
	offset int64
	// end has the last bytes before offset, begin a table's first line.
	end, begin []byte
	err        error // of the newest read
}

const endSize = 256

func (t *tail) news() (*os.File, int64, error) {
	info, err := os.Stat(t.path)
	if err != nil {
		return nil, 0, err
	}
	if t.info != nil && os.SameFile(info, t.info) && info.Size() == t.info.Size() && info.ModTime().Equal(t.info.ModTime()) {
		return nil, 0, nil
	}
	file, err := regular.Open(t.path, os.O_RDONLY, 0)
	if err != nil {
		return nil, 0, err
	}
	if info, err = file.Stat(); err == nil && !t.goesOn(file, info) {
		t.offset, t.end, t.begin = 0, nil, nil
	}
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	t.info = info
	return file, info.Size(), nil
}

func (t *tail) goesOn(file *os.File, info fs.FileInfo) bool {
	if t.offset == 0 || info.Size() < t.offset || !os.SameFile(info, t.info) {
		return false
	}
	now := make([]byte, len(t.end))
	_, err := file.ReadAt(now, t.offset-int64(len(now)))
	return (err == nil || err == io.EOF) && bytes.Equal(now, t.end)
}

func (t *tail) left() *tail {
	now, err := os.Stat(t.path)
	if t.offset == 0 || err != nil || os.SameFile(now, t.info) {
		return nil
	}
	old := *t
	old.path += ".1"
	if info, err := os.Stat(old.path); err != nil || !os.SameFile(info, t.info) {
		return nil
	}
	return &old
}

func (t *tail) keep(file io.ReaderAt, offset int64) error {
	t.end = make([]byte, min(endSize, offset))
	_, err := file.ReadAt(t.end, offset-int64(len(t.end)))
	if err == io.EOF {
		err = nil
	}
	t.offset = offset
	return err
}

// read passes the whole lines that were added; a table's with its header.
func (t *tail) read(take func(in io.Reader, json bool) error) (err error) {
	if old := t.left(); old != nil {
		if err := old.read(take); err != nil {
			return err
		}
	}
	file, size, err := t.news()
	if file == nil {
		return errors.Join(t.err, wrapped(t.path, err))
	}
	defer func() {
		if t.err = wrapped(t.path, errors.Join(err, file.Close())); t.err != nil {
			t.offset = 0 // when it changes, it is read from its start
		}
		err = t.err
	}()
	end, err := lastLine(io.NewSectionReader(file, t.offset, size-t.offset), size-t.offset)
	if err != nil || end == 0 {
		return err
	}
	end += t.offset
	if t.begin == nil {
		if t.begin, err = firstLine(file, end); err != nil {
			return err
		}
	}
	json := t.begin[0] == jsonStart[0]
	var in io.Reader = io.NewSectionReader(file, t.offset, end-t.offset)
	if t.offset > 0 && !json {
		in = io.MultiReader(bytes.NewReader(t.begin), in)
	}
	if err := take(in, json); err != nil {
		return err
	}
	return t.keep(file, end)
}

func wrapped(path string, err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) { // removed, or not written yet
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

func firstLine(file io.ReaderAt, end int64) ([]byte, error) {
	line := make([]byte, 0, 4<<10)
	for {
		part := make([]byte, min(int64(cap(line)), end-int64(len(line))))
		n, err := file.ReadAt(part, int64(len(line)))
		if err != nil && err != io.EOF {
			return nil, err
		}
		if i := bytes.IndexByte(part[:n], '\n'); i >= 0 {
			return append(line, part[:i+1]...), nil
		}
		if line = append(line, part[:n]...); n == 0 {
			return line, io.ErrUnexpectedEOF
		}
	}
}

func (t *tail) readEvents(take func(message)) error {
	file, _, err := t.news()
	if file == nil {
		return errors.Join(t.err, wrapped(t.path, err))
	}
	defer file.Close()
	t.err = nil
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	offset := t.offset
	for record, err := range files.ReadTFRecords(file, longestEvent) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			t.err = wrapped(t.path, err)
			break
		}
		take(parse(record))
		offset += tfFrame + int64(len(record))
	}
	return errors.Join(t.err, t.keep(file, offset))
}

const tfFrame = 8 + 4 + 4

func (t *tail) readLog(take func(text string)) error {
	file, size, err := t.news()
	if file == nil {
		return wrapped(t.path, err)
	}
	defer file.Close()
	from := max(t.offset, size-mostOfLogs)
	text := make([]byte, size-from)
	if _, err := file.ReadAt(text, from); err != nil && err != io.EOF {
		return wrapped(t.path, err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	begin := 0
	if from > t.offset {
		begin = min(whole, bytes.IndexByte(text, '\n')+1)
	}
	if begin < whole {
		take(string(text[begin:whole]))
	}
	return t.keep(file, from+int64(whole))
}
