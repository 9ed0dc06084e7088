package loop

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/lazo-ml/lazo/internal/regular"
)

// JSONL writes one line a due turn that logged anything into a file: an object with the elapsed steps, samples, time and
// date, and all entries by their full names. It reads the values of these turns. [History.ReadJSON] reads the file.
//
// Each line is one write to the system, so a process that is killed leaves at most its last line cut (a machine
// that loses power may lose more). A run that finds the file goes on with it: a cut last line is removed, and so are
// all lines of steps behind the one at which this run begins (see [From]). A resumed run so writes no step twice, and
// one from step 0 writes the file anew. A file that is none of lazo's is an error of the first due turn, and stays.
// What is no regular file, such as a pipe or a /dev/stdout that is one, is such an error too: reading it would wait for ever.
//
// The disk may be full and the run is still worth going on with: where writing fails, or a value cannot be read or its name
// not be written, the run goes on without, and the error is one of the end. A [Payload] that is no number is left out.
func JSONL(path string, when Schedule) Callback {
	return records("jsonl ", path, when, func() form { return jsonLines{} })
}

// CSV is [JSONL] as a table, with the columns of [History.WriteCSV] but the batch. Entries that come up later get columns
// at the right: the file is then written once more beside the old one and takes its place whole.
func CSV(path string, when Schedule) Callback {
	return records("csv ", path, when, func() form { return &csvLines{} })
}

func records(kind, path string, when Schedule, form func() form) Callback {
	return Callback{Name: kind + path, When: when, Start: func(Beginning) (Attendant, error) {
		return &recordFile{path: path, form: form()}, nil
	}}
}

// recordFile is a file of one record a line.
type recordFile struct {
	path string
	form form
	file *os.File // nil until the first record
	rec  record
	line []byte
	// broken is true once the file could not be written or was closed: it is left alone then.
	broken bool
	err    error // the first
}

// form is how records stand in lines.
type form interface {
	// read looks at a line of an old file and gives its steps; ok is false for a line of column names.
	read(line []byte) (steps int64, ok bool, err error)
	// start is how the first line begins.
	start() string
	// anew forgets an old file of which no record is left.
	anew()
	// widen gives a new first line if the record needs one, and what is then to be put behind each line.
	widen(r *record) (header, behind []byte)
	append(b []byte, r *record) []byte
}

func (f *recordFile) Watch(_ context.Context, r Report) error {
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

// End closes the file.
func (f *recordFile) End(context.Context, Ending) error {
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

func (f *recordFile) fill(r Report) {
	f.rec.reset(row{elapsed: r.Elapsed, batch: unknownBatch})
	for _, e := range r.Logs.entries {
		column, err := columnName(place{e.Collection, e.Name})
		if err == nil {
			err = f.rec.add(column, e.Value)
		}
		f.note(err)
	}
}

func (f *recordFile) write() error {
	if header, behind := f.form.widen(&f.rec); header != nil {
		if err := f.rewrite(header, behind); err != nil {
			return err
		}
	}
	f.line = f.form.append(f.line[:0], &f.rec)
	_, err := f.file.Write(f.line)
	return err
}

// open opens the file, and cuts it before the first line that is not whole or of a later step.
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

// keep gives the length of the part of the file that stays.
func (f *recordFile) keep(file *os.File, from int64) (end int64, err error) {
	in, kept := bufio.NewReader(file), 0
	for n := 1; ; n++ {
		line, err := readLine(in)
		if err == io.EOF && (n > 1 || begins(f.form.start(), line)) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("%s: line %d: %w; move the file away", f.path, n, err)
		}
		steps, isRecord, err := f.form.read(line[:len(line)-1])
		if err != nil {
			return 0, fmt.Errorf("%s: line %d: %w; move the file away", f.path, n, err)
		}
		if isRecord {
			if steps > from {
				break
			}
			kept++
		}
		end += int64(len(line))
	}
	if kept == 0 {
		f.form.anew()
		return 0, nil
	}
	return end, nil
}

// begins tells whether a cut line may be one that began as start: other files are not touched.
func begins(start string, line []byte) bool {
	n := min(len(start), len(line))
	return start[:n] == string(line[:n])
}

// rewrite puts a line before all others in place of the old first one, and something behind each. The new file takes the
// place of the old one whole: a kill leaves one of the two.
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
	// Closed before the renaming, which some systems need.
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
	out.Write(header) // an error stays with the writer until Flush
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

// longest bounds a line, so that a file without line ends does not fill the memory.
const longest = 16 << 20

// readLine reads a whole line with its end. What follows the last line end comes with io.EOF.
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
