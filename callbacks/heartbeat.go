package callbacks

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// Heartbeat writes a line with the time and the step to a file when it is due:
// "timestamp_ms:1735689600000.000,step_number:100", in milliseconds since 1970. It empties the file at the start.
// After 1 MiB a file with the newest line replaces it. If lines cannot be written, slog's default logger gets a
// warning, and the run's end returns the first error.
func Heartbeat(path string, when loop.Schedule) loop.Callback {
	return loop.Callback{Name: "heartbeat " + path, When: when, AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
		h := &heartbeat{path: path}
		h.err = h.write(os.O_TRUNC, nil)
		return h, nil
	}}
}

type heartbeat struct {
	path    string
	line    []byte
	failing bool
	err     error
}

func (h *heartbeat) Watch(ctx context.Context, r loop.Report) error {
	h.line = append(h.line[:0], "timestamp_ms:"...)
	// readers compare it with the wall clock
	h.line = strconv.AppendFloat(h.line, float64(time.Now().UnixMicro())/1000, 'f', 3, 64)
	h.line = append(h.line, ",step_number:"...)
	h.line = strconv.AppendInt(h.line, r.Elapsed.Steps, 10)
	h.line = append(h.line, '\n')
	err := h.write(os.O_APPEND, h.line)
	if err != nil && !h.failing {
		slog.WarnContext(ctx, "callbacks: heartbeat: not written", "file", h.path, "step", r.Elapsed.Steps, "error", err)
	}
	if h.failing = err != nil; h.err == nil {
		h.err = err
	}
	return nil
}

const longestHeartbeat = 1 << 20

func (h *heartbeat) write(how int, line []byte) error {
	file, err := regular.Open(h.path, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	end, err := file.Seek(0, io.SeekEnd)
	if err == nil && end+int64(len(line)) > longestHeartbeat {
		return errors.Join(file.Close(), h.replace(line))
	}
	if err == nil {
		if _, err = file.Write(line); err != nil {
			err = errors.Join(err, file.Truncate(end)) // no half lines
		}
	}
	return errors.Join(err, file.Close())
}

// replace is atomic: readers always find a line.
func (h *heartbeat) replace(line []byte) error {
	beside := h.path + ".tmp"
	err := regular.Write(beside, line, 0o644)
	if err == nil {
		err = os.Rename(beside, h.path)
	}
	if err != nil && !errors.Is(err, regular.Err) {
		_ = os.Remove(beside) // it may not be there
	}
	return err
}

func (h *heartbeat) End(context.Context, loop.Ending) error { return h.err }
