package tensorboard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lazo-ml/lazo/internal/records"
	"github.com/lazo-ml/lazo/internal/tfrecord"
)

const (
	filePrefix = "events.out.tfevents."
	// fileVersionText is the first record. TensorBoard purges only by files that have it.
	fileVersionText = "brain.Event:2"
	// statusStart is SessionLog.START: it hides older files from this event's step on.
	statusStart = 1
)

// eventFile completes a record that was written in part: nothing after it is readable.
type eventFile struct {
	settings *settings
	folder   string
	out      io.WriteCloser
	path     string
	info     fs.FileInfo // nil if out is not a file
	older    bool
	purge    int64 // first step that older files must not have
	sent     int
	end      int64 // bytes of the file
	backlog  records.Backlog[event]
}

type event struct {
	step    int64
	seconds float64
	record  []byte
	// resumed: older files have the step at which the run continues.
	resumed bool
}

func (s *settings) newFile(folder string, purge int64) *eventFile {
	return &eventFile{settings: s, folder: folder, purge: purge, backlog: records.Backlog[event]{Path: folder, Clone: func(e event) (event, int) {
		return e, len(e.record)
	}}}
}

func createFile(path string) (io.WriteCloser, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
}

func (f *eventFile) add(e event) { f.backlog.Add(e.step, e, f.write) }

func (f *eventFile) write(e event) error {
	if err := f.open(e.seconds); err != nil {
		return err
	}
	if f.older && e.resumed {
		return nil
	}
	// One system call, for at most one incomplete record of a killed process.
	n, err := f.out.Write(e.record[f.sent:])
	f.end += int64(n)
	if f.sent += n; err != nil {
		return err
	}
	f.sent, f.purge = 0, e.step+1
	return nil
}

func (f *eventFile) close() (err error) {
	if f.out != nil {
		err = f.out.Close()
		f.out = nil
	}
	return err
}

// open hides older files from step purge on. It also replaces a rotated file.
func (f *eventFile) open(seconds float64) error {
	if f.out != nil {
		if f.info == nil || !records.Rotated(f.path, f.info, f.end) {
			return nil
		}
		if err := f.close(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(f.folder, 0o750); err != nil {
		return err
	}
	newest, older, err := newestFile(f.folder)
	if err != nil {
		return err
	}
	// TensorBoard reads files in the order of their names: this is the last.
	out, path, err := f.settings.createNamed(f.folder, max(int64(seconds), newest+1))
	if err != nil {
		return err
	}
	begin := tfrecord.Append(nil, message{}.float(1, seconds).text(fileVersion, fileVersionText))
	// The first start that TensorBoard reads purges nothing, and other programs' files may have none: write two.
	for n := 0; n < 2 && older; n++ {
		begin = tfrecord.Append(begin, eventOf(seconds, f.purge, sessionLog, message{}.integer(1, statusStart)))
	}
	if _, err = out.Write(begin); err != nil {
		_ = os.Remove(path) // one file for each attempt would stay
		return errors.Join(err, out.Close())
	}
	f.out, f.path, f.info, f.older, f.sent, f.end = out, path, nil, older, 0, int64(len(begin))
	if file, ok := out.(fs.File); ok {
		f.info, err = file.Stat()
	}
	return err
}

// createNamed uses TensorFlow 2's names: seconds, host, process, a number, "v2".
func (s *settings) createNamed(folder string, seconds int64) (out io.WriteCloser, path string, err error) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	host = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' || r < ' ' {
			return '_'
		}
		return r
	}, host)
	for n := 0; ; n++ {
		path = filepath.Join(folder, fmt.Sprintf("%s%010d.%s.%d.%d.v2", filePrefix, seconds, host, os.Getpid(), n))
		if out, err = s.create(path); !errors.Is(err, fs.ErrExist) {
			return out, path, err
		}
	}
}

func newestFile(folder string) (seconds int64, some bool, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return 0, false, err
	}
	for _, e := range entries {
		rest, is := strings.CutPrefix(e.Name(), filePrefix)
		if !is {
			continue
		}
		some = true
		number, _, _ := strings.Cut(rest, ".")
		// Other names have no time, and a far future time has no later name.
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && n < 9_999_999_999 {
			seconds = max(seconds, n)
		}
	}
	return seconds, some, nil
}

func secondsOf(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
