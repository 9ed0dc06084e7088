package callbacks

import (
	"context"
	"errors"
	"os"
	"strconv"
	"time"

	"github.com/lazo-ml/lazo/internal/regular"
	"github.com/lazo-ml/lazo/loop"
)

// Heartbeat writes a line with the time and the step to a file when it is due, for other processes:
// "timestamp_ms:1735689600000.000,step_number:100", in milliseconds since 1970. It empties the file at the start, and
// removes the earlier lines when the file has 64 KiB. It opens the file for each line, so a removed file is created
// again. The end of the run returns the first error.
func Heartbeat(path string, when loop.Schedule) loop.Callback {
	return loop.Callback{Name: "heartbeat " + path, When: when, AtRank0: true, Start: func(loop.Beginning) (loop.Attendant, error) {
		h := &heartbeat{path: path}
		h.err = h.write(os.O_TRUNC, nil)
		return h, nil
	}}
}

const mostHeartbeat = 64 << 10

type heartbeat struct {
	path string
	line []byte
	size int
	err  error
}

func (h *heartbeat) Watch(_ context.Context, r loop.Report) error {
	h.line = append(h.line[:0], "timestamp_ms:"...)
	// readers compare it with the wall clock
	h.line = strconv.AppendFloat(h.line, float64(time.Now().UnixMicro())/1000, 'f', 3, 64)
	h.line = append(h.line, ",step_number:"...)
	h.line = strconv.AppendInt(h.line, r.Elapsed.Steps, 10)
	h.line = append(h.line, '\n')
	how := os.O_APPEND
	if h.size += len(h.line); h.size > mostHeartbeat {
		how, h.size = 0, len(h.line)
	}
	if err := h.write(how, h.line); h.err == nil {
		h.err = err
	}
	return nil
}

func (h *heartbeat) write(how int, line []byte) error {
	file, err := regular.Open(h.path, os.O_CREATE|os.O_WRONLY|how, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	if how == 0 { // after the write, so that a reader always finds a line
		err = errors.Join(err, file.Truncate(int64(len(line))))
	}
	return errors.Join(err, file.Close())
}

func (h *heartbeat) End(context.Context, loop.Ending) error { return h.err }
