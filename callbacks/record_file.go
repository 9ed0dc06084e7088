package callbacks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// JSONL writes a line to a file in each due iteration that logged anything: a JSON object with the elapsed steps,
// samples, seconds and date, and all numbers by full name. [loop.History.ReadJSON] reads the file.
//
// A run continues an existing file: it removes an incomplete last line and all lines after the step at which it
// begins. A file with other content is an error at the first due iteration; one that another callback writes, at the
// start. An unreadable value does not end the run, whose end returns the first such error.
//
// If a line cannot be written, up to 16 MiB of lines wait in memory. slog's default logger gets a warning, and the
// run's end returns an error if lines are missing. If the file was renamed, removed or emptied, the next line begins a
// new one.
func JSONL(path string, when loop.Schedule) loop.Callback {
	return recorder("jsonl ", path, when, records.JSONLines)
}

// CSV is [JSONL] as a table, with the columns of [loop.History.WriteCSV] except the batch. New entries get columns at
// the right.
func CSV(path string, when loop.Schedule) loop.Callback {
	return recorder("csv ", path, when, records.CSVLines)
}

func recorder(kind, path string, when loop.Schedule, lines func() records.Lines) loop.Callback {
	return loop.Callback{Name: kind + path, When: when, AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
		f := &recordFile{path: path, form: lines, key: path, disk: openRegular}
		f.backlog = records.Backlog[*records.Row]{Path: path, Clone: cloneRow}
		if whole, err := filepath.Abs(path); err == nil {
			f.key = whole
		}
		if _, taken := recorded.LoadOrStore(f.key, f); taken {
			return nil, fmt.Errorf("%s: another callback of this process writes it: give each its own file", path)
		}
		return f, nil
	}}
}

// recorded: each file has one writer.
var recorded sync.Map

type recordFile struct {
	path string
	key  string
	form func() records.Lines
	disk func(path string, how int, mode fs.FileMode) (diskFile, error)

	lines          records.Lines
	file           diskFile
	info           fs.FileInfo
	end            int64 // of the written part
	sent           int   // written bytes of an incomplete line
	header, behind []byte
	from           int64 // later lines are not of this run
	row            records.Row
	line           []byte
	backlog        records.Backlog[*records.Row]
	full           error // of the last rewrite
	skip, skipped  int   // calls until the next one, and between the last two
	begun, broken  bool
	err            error
}

type diskFile interface {
	io.ReadWriteSeeker
	io.Closer
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
}

func openRegular(path string, how int, mode fs.FileMode) (diskFile, error) {
	file, err := regular.Open(path, how, mode)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func cloneRow(r *records.Row) (*records.Row, int) {
	kept := *r
	kept.Columns, kept.Numbers = slices.Clone(r.Columns), slices.Clone(r.Numbers)
	const fixed, number = 160, 24 // a row, and a name with its number
	size := fixed + number*len(r.Columns)
	for _, c := range r.Columns {
		size += len(c)
	}
	return &kept, size
}

func (f *recordFile) Watch(_ context.Context, r loop.Report) error {
	if f.broken || r.Logs.Len() == 0 {
		return nil
	}
	if !f.begun {
		f.begun, f.from = true, r.From.Steps
		if err := f.reopen(); err != nil {
			f.broken = true
			return err
		}
	}
	f.fill(r)
	f.backlog.Add(r.Elapsed.Steps, &f.row, f.write)
	return nil
}

func (f *recordFile) End(context.Context, loop.Ending) error {
	defer recorded.CompareAndDelete(f.key, f)
	if f.begun && !f.broken {
		f.broken = true
		f.skip = 0
		_ = f.backlog.Retry(f.write) // Err has its error
		f.note(f.backlog.Err())
	}
	if f.file != nil {
		f.note(f.file.Close())
		f.file = nil
	}
	return f.err
}

func (f *recordFile) note(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *recordFile) fill(r loop.Report) {
	at := r.Elapsed
	f.row.Reset(records.Elapsed{Steps: at.Steps, Samples: at.Samples, Epochs: at.Epochs, Batch: records.UnknownBatch, Time: at.Time, Date: int64(at.Date)})
	for e := range r.Logs.All() {
		column, err := records.Column(string(e.Collection), e.Name)
		if err == nil {
			err = f.row.Add(column, e.Value)
		}
		f.note(err)
	}
}

func (f *recordFile) write(row *records.Row) error {
	if err := f.reopen(); err != nil {
		return err
	}
	if f.header == nil {
		f.header, f.behind = f.lines.Widen(row)
	}
	if f.header != nil {
		if f.skip > 0 {
			f.skip--
			return f.full
		}
		if f.full = f.rewrite(f.header, f.behind); f.full != nil { // it writes the whole file, so not at each row
			f.skipped = min(2*f.skipped+1, 127)
			f.skip = f.skipped
			return f.full
		}
		f.header, f.skipped = nil, 0
	}
	f.line = f.lines.Append(f.line[:0], row)
	n, err := f.file.Write(f.line[f.sent:])
	f.end += int64(n)
	if f.sent += n; err != nil {
		return err
	}
	f.sent, f.from = 0, row.Steps
	return nil
}

func (f *recordFile) reopen() error {
	if f.file != nil {
		if !records.Rotated(f.path, f.info, f.end) {
			return nil
		}
		f.note(f.file.Close())
		f.file = nil
	}
	f.lines, f.header, f.sent = f.form(), nil, 0
	file, err := f.disk(f.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	end, err := f.keep(file, f.from)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		err = f.goOn(file, end)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

func (f *recordFile) goOn(file diskFile, end int64) (err error) {
	if _, err = file.Seek(end, io.SeekStart); err == nil {
		f.info, err = file.Stat()
	}
	if err == nil {
		f.file, f.end = file, end
	}
	return err
}

func (f *recordFile) keep(file io.Reader, from int64) (end int64, err error) {
	in, kept := bufio.NewReader(file), 0
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF && (n > 1 || begins(f.lines.Start(), line)) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("%s: line %d: %w; move the file away", f.path, n, err)
		}
		steps, isRow, err := f.lines.Read(line[:len(line)-1])
		if err != nil {
			return 0, fmt.Errorf("%s: line %d: %w; move the file away", f.path, n, err)
		}
		if isRow {
			if steps > from {
				break
			}
			kept++
		}
		end += int64(len(line))
	}
	if kept == 0 {
		f.lines.Forget()
		return 0, nil
	}
	return end, nil
}

func begins(start string, line []byte) bool {
	n := min(len(start), len(line))
	return start[:n] == string(line[:n])
}

func (f *recordFile) rewrite(header, behind []byte) error {
	beside := f.path + ".tmp"
	file, err := f.disk(beside, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if _, err = f.file.Seek(0, io.SeekStart); err == nil {
		err = copyLines(file, f.file, header, behind)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, f.goOn(f.file, f.end), os.Remove(beside))
	}
	// Some systems rename closed files only.
	err = f.file.Close()
	f.file = nil
	if err == nil {
		err = os.Rename(beside, f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(beside))
	}
	if file, err = f.disk(f.path, os.O_RDWR, 0); err != nil {
		return err
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err == nil {
		err = f.goOn(file, end)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.sent = 0
	return nil
}

func copyLines(to io.Writer, from io.Reader, header, behind []byte) error {
	out, in := bufio.NewWriter(to), bufio.NewReader(from)
	out.Write(header)
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			return out.Flush()
		}
		if err != nil {
			return err
		}
		if n > 1 {
			out.Write(line[:len(line)-1])
			out.Write(behind)
			out.WriteByte('\n')
		}
	}
}

const longest = 16 << 20

func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if err == nil && line == nil {
			return part, nil
		}
		line = append(line, part...)
		if err == nil {
			return line, nil
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
		if len(line) > longest {
			return nil, fmt.Errorf("longer than %d bytes", longest)
		}
	}
}
