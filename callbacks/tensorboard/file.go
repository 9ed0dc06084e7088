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

	"github.com/lazo-ml/lazo/internal/tfrecord"
)

const (
	filePrefix = "events.out.tfevents."
	// fileVersionText is the first record. TensorBoard purges only by files that have it.
	fileVersionText = "brain.Event:2"
	// statusStart is SessionLog.START: it hides older files from this event's step on.
	statusStart = 1
)

type eventFile struct {
	out    io.WriteCloser
	record []byte
	older  bool
	// broken: after half a record nothing can be read.
	broken bool
}

func createFile(path string) (io.WriteCloser, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o640)
}

// openFile creates an event file that hides older files from step purge on.
func (s *settings) openFile(folder string, seconds float64, purge int64) (*eventFile, error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	newest, older, err := newestFile(folder)
	if err != nil {
		return nil, err
	}
	f := &eventFile{older: older}
	// TensorBoard reads files in the order of their names: this is the last.
	if f.out, err = s.createNamed(folder, max(int64(seconds), newest+1)); err != nil {
		return nil, err
	}
	err = f.write(message{}.float(1, seconds).text(fileVersion, fileVersionText))
	// The first start that TensorBoard reads purges nothing, and other programs' files may have none: write two.
	for n := 0; n < 2 && err == nil && older; n++ {
		err = f.write(event(seconds, purge, sessionLog, message{}.integer(1, statusStart)))
	}
	if err != nil {
		return nil, errors.Join(err, f.out.Close())
	}
	return f, nil
}

// createNamed uses TensorFlow 2's names: seconds, host, process, a number, "v2".
func (s *settings) createNamed(folder string, seconds int64) (io.WriteCloser, error) {
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
		name := fmt.Sprintf("%s%010d.%s.%d.%d.v2", filePrefix, seconds, host, os.Getpid(), n)
		out, err := s.create(filepath.Join(folder, name))
		if !errors.Is(err, fs.ErrExist) {
			return out, err
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

// write makes one system call, for at most one incomplete record of a killed process.
func (f *eventFile) write(event []byte) error {
	f.record = tfrecord.Append(f.record[:0], event)
	_, err := f.out.Write(f.record)
	f.broken = err != nil
	return err
}

func secondsOf(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }
