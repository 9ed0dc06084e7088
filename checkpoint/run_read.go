package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lazo-ml/lazo/checkpoint/safetensors"
	"github.com/lazo-ml/lazo/internal/vfs"
	"github.com/lazo-ml/lazo/loop"
)

// Run describes the run in a folder.
type Run struct {
	// Elapsed and History are those of the newest good checkpoint; zero and empty before the first.
	Elapsed loop.Elapsed
	History *loop.History
	// Settings are the [State]'s, and the fields of Options.Same, as JSON unless texts. A field with a setting's name
	// gets the prefix "same.".
	Settings map[string]string
	Status   RunStatus
	// Why is the reason of the end, like "until reached after 100 steps", with the error; "" if it is unknown.
	Why string
}

// RunStatus is the state of a saved run.
type RunStatus string

const (
	// Running: a process has the folder open for writing. Those of an object store are unknown.
	Running RunStatus = "running"
	// Ended: by its data, by [loop.Until], or by [loop.ErrStop].
	Ended RunStatus = "ended"
	// Failed: by an error.
	Failed RunStatus = "failed"
	// Interrupted: by a cancellation, [loop.ErrPause], or the end of its process.
	Interrupted RunStatus = "interrupted"
)

// Run reads the description of the saved run, without its state. A damaged checkpoint is skipped, as by
// [Folder.Newest]. A folder that no process has opened for writing is [ErrNone].
func (f *Folder) Run(ctx context.Context) (*Run, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, err := f.readRun(ctx)
	return r, f.wrap(err, "read the run")
}

func (f *Folder) readRun(ctx context.Context) (*Run, error) {
	if err := f.use(false); err != nil {
		return nil, err
	}
	r := &Run{History: &loop.History{}, Settings: map[string]string{}}
	if err := f.readStatus(ctx, r); err != nil {
		return nil, err
	}
	for turn := 1; ; turn++ {
		places, err := f.places(ctx, func(place) bool { return true })
		if err != nil {
			return nil, err
		}
		var failed []error
		for _, p := range slices.Backward(places) {
			err := f.readRows(ctx, p, r)
			if err == nil {
				return r, nil
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if there, hasErr := f.medium.has(ctx, p.String()); hasErr == nil && !there && turn < turns {
				failed = nil // the run removed it
				break
			}
			failed = append(failed, err)
			f.options.Log.Warn("checkpoint: skipped", "folder", f.dir, "checkpoint", p.String(), "error", err)
		}
		switch {
		case failed != nil:
			return nil, fmt.Errorf("%d found, none can be read: %w", len(failed), errors.Join(failed...))
		case len(places) == 0:
			locked, err := f.medium.has(ctx, lockName)
			if err == nil && !locked {
				err = ErrNone
			}
			return r, err
		}
	}
}

func (f *Folder) readStatus(ctx context.Context, r *Run) error {
	end, err := readNote(f.opener(ctx), endName)
	if err != nil {
		return err
	}
	broken, err := readNote(f.opener(ctx), brokenName)
	if err != nil {
		return err
	}
	r.Why = strings.TrimSpace(cmp.Or(end, broken))
	switch {
	case end != "":
		r.Status = Ended
	case strings.HasPrefix(broken, loop.Failed.String()):
		r.Status = Failed
	default:
		r.Status = Interrupted
	}
	if _, isDisk := f.medium.(*disk); !isDisk {
		return nil
	}
	locked, err := vfs.Locked(filepath.Join(f.dir, lockName))
	if locked {
		r.Status, r.Why = Running, ""
	}
	return err
}

func (f *Folder) readRows(ctx context.Context, at place, r *Run) error {
	m, err := readManifest(f.opener(ctx), at.String(), at.step)
	if err != nil {
		return err
	}
	path := at.String() + "/" + stateName
	file, err := openFile(f.opener(ctx), path)
	if err != nil {
		return err
	}
	c := &Checkpoint{Info: m.info(), sections: m.sections}
	history := &loop.History{}
	reader, err := openReader(ctx, file, path, m.state)
	if err == nil {
		err = readHistory(reader, path, m, history)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	p := position{Steps: int64(c.Step)} // of a checkpoint that no run saved
	if err := c.Section(loopSection, &p); err != nil && !errors.Is(err, ErrNoSection) {
		return err
	}
	settings, err := textsOf(c, settingsSection)
	if err != nil {
		return err
	}
	if settings == nil {
		settings = map[string]string{}
	}
	for name, text := range fields(c.sections[sameSection]) {
		if text == nil {
			continue
		}
		value := textOf(map[string]json.RawMessage{"": text}, "")
		_ = json.Unmarshal(text, &value) // else it is not a text
		if _, taken := settings[name]; taken || name == "" {
			name = strings.TrimSuffix("same."+name, ".")
		}
		settings[name] = value
	}
	r.Elapsed, r.History, r.Settings = loop.Elapsed(p), history, settings
	return nil
}

// readHistory reads nothing from a checkpoint that no run saved.
func readHistory(reader *safetensors.Reader, path string, m *manifest, into *loop.History) error {
	at := m.state.HeaderSize
	for header := range reader.Tensors() {
		size, err := header.ByteSize()
		if err != nil {
			return damagedFormat(path, err)
		}
		if header.Name == historyTensor {
			rows, err := tensorPlace{header, at, size, m.sums[historyTensor]}.read(reader, path, true)
			if err != nil {
				return err
			}
			return into.ReadJSON(bytes.NewReader(rows.Data))
		}
		at += size
	}
	return nil
}
