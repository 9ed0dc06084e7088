package tensorboard_test

import (
	"image"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lazo-ml/lazo/callbacks/tensorboard"
	"github.com/lazo-ml/lazo/loop"
)

// write logs one turn at step 1 by hand, and reads what was written for the training.
func write(t *testing.T, log func(*loop.Logs)) (events, error) {
	t.Helper()
	dir := t.TempDir()
	w := tensorboard.New(dir)
	var logs loop.Logs
	log(&logs)
	require.NoError(t, w.Watch(t.Context(), loop.Report{Elapsed: loop.Elapsed{Steps: 1}, Logs: logs}))
	err := w.End(t.Context(), loop.Ending{})
	all := read(t, filepath.Join(dir, "train"))
	if len(all) == 0 {
		return events{}, err
	}
	return all[0], err
}

func ramp(width, height int) image.Image {
	p := image.NewGray(image.Rect(0, 0, width, height))
	for i := range p.Pix {
		p.Pix[i] = uint8(17 * i)
	}
	return p
}

type badPayload struct{ err error }

func (b badPayload) Float() (float64, error) { return 0, b.err }
func (b badPayload) Any() (any, error)       { return nil, b.err }
