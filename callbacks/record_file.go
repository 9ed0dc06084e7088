package callbacks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// JSONL writes a line to a file in each due iteration that logged anything: a JSON object with the elapsed steps,
// samples, seconds and date, and all numbers by full name. [loop.History.ReadJSON] reads the file.
//
// A run continues an existing file: it removes an incomplete last line and all lines after the step at which it begins
// ([loop.Continue]). A file with other content stays unchanged and is an error at the first due iteration; one that
// another callback of this process writes, at the start. After a failed write or an unreadable value the run continues;
// its end returns the first such error.
func JSONL(path string, when loop.Schedule) loop.Callback {
	return recorder("jsonl ", path, when, records.JSONLines)
}

// CSV is [JSONL] as a table, with the columns of [loop.History.WriteCSV] except the batch. New entries get columns at
// the right; the file is then replaced atomically.
func CSV(path string, when loop.Schedule) loop.Callback {
	return recorder("csv ", path, when, records.CSVLines)
}

func recorder(kind, path string, when loop.Schedule, lines func() records.Lines) loop.Callback {
	return loop.Callback{Name: kind + path, When: when, AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
		f := &recordFile{path: path, lines: lines(), key: path}
		if whole, err := filepath.Abs(path); err == nil {
			f.key = whole
		}
		if _, taken := recorded.LoadOrStore(f.key, f); taken {
			return nil, fmt.Errorf("%s: another callback of this process writes it: give each its own file", path)
		}
		return f, nil
	}}
}

// recorded has the files being written, each by one writer.
var recorded sync.Map

type recordFile struct {
	path   string
	key    string
	lines  records.Lines
	file   *os.File
	row    records.Row
	line   []byte
	broken bool
	err    error
}

func (f *recordFile) Watch(_ context.Context, r loop.Report) error {
	if f.broken || r.Logs.Len() == 0 {
		return nil
	}
	if f.file == nil {
		if err := f.open(r.From.Steps); err != nil {
			f.broken = true
			return err
		}
	}
	f.fill(r)
	if err := f.write(); err != nil {
		f.broken = true
		f.note(err)
	}
	return nil
}

func (f *recordFile) End(context.Context, loop.Ending) error {
	recorded.CompareAndDelete(f.key, f)
	if f.file != nil {
		f.note(f.file.Close())
		f.file, f.broken = nil, true
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

func (f *recordFile) write() error {
	if header, behind := f.lines.Widen(&f.row); header != nil {
		if err := f.rewrite(header, behind); err != nil {
			return err
		}
	}
	f.line = f.lines.Append(f.line[:0], &f.row)
	_, err := f.file.Write(f.line)
	return err
}

func (f *recordFile) open(from int64) error {
	file, err := regular.Open(f.path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	end, err := f.keep(file, from)
	if err == nil {
		err = file.Truncate(end)
	}
	if err == nil {
		_, err = file.Seek(end, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file = file
	return nil
}

func (f *recordFile) keep(file *os.File, from int64) (end int64, err error) {
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

// rewrite atomically replaces the first line by header and appends the second text to each other line.
func (f *recordFile) rewrite(header, behind []byte) error {
	if _, err := f.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	beside := f.path + ".tmp"
	file, err := regular.Open(beside, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	err = copyLines(file, f.file, header, behind)
	if err == nil {
		err = file.Sync()
	}
	// Some systems rename closed files only.
	if err = errors.Join(err, file.Close(), f.file.Close()); err == nil {
		err = os.Rename(beside, f.path)
	}
	if err == nil {
		f.file, err = os.OpenFile(f.path, os.O_RDWR|os.O_APPEND, 0)
	}
	if err != nil {
		f.file = nil
		return errors.Join(err, os.Remove(beside))
	}
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
