package checkpoint

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Info describes a checkpoint without its tensors.
type Info struct {
	Step Step
	// Time is that of the save, in UTC.
	Time    time.Time
	Metrics map[string]float64
	// Bytes is the tensors' size.
	Bytes int64
	// Err is why the checkpoint cannot be loaded: a [*DamagedError], [ErrNewer], or an error of reading. Then only Step
	// is set.
	Err error
}

type entry struct {
	place
	manifest *manifest
	err      error
}

func (e entry) info() Info {
	if e.err != nil {
		return Info{Step: e.step, Err: e.err}
	}
	return e.manifest.info()
}

func (m *manifest) info() Info {
	metrics := make(map[string]float64, len(m.metrics))
	for name, x := range m.metrics {
		metrics[name] = float64(x)
	}
	return Info{Step: m.step, Time: m.time, Metrics: metrics, Bytes: m.state.Size - m.state.HeaderSize + m.cutBytes()}
}

// List returns the checkpoints, one per step, sorted by step. Only [Folder.Verify] detects damage in tensors.
func (f *Folder) List(ctx context.Context) ([]Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.use(false); err != nil {
		return nil, f.wrap(err, "list")
	}
	entries, err := f.scan(ctx)
	if err != nil {
		return nil, f.wrap(err, "list")
	}
	var list []Info
	for _, e := range entries {
		info := e.info()
		if last := len(list) - 1; last >= 0 && list[last].Step == e.step {
			if info.Err == nil || list[last].Err != nil {
				list[last] = info
			}
			continue
		}
		list = append(list, info)
	}
	return list, nil
}

func (f *Folder) places(ctx context.Context, want func(place) bool) ([]place, error) {
	names, err := f.medium.names(ctx)
	if err != nil {
		return nil, err
	}
	var list []place
	for _, name := range names {
		if p, ok := parsePlace(name); ok && want(p) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, place.compare)
	return list, nil
}

func (f *Folder) scan(ctx context.Context) ([]entry, error) {
	places, err := f.places(ctx, func(place) bool { return true })
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(places))
	for _, p := range places {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		m, err := readInfo(f.opener(ctx), p)
		entries = append(entries, entry{p, m, err})
	}
	return entries, nil
}

func readInfo(open opener, at place) (*manifest, error) {
	m, err := readManifest(open, at.String(), at.step)
	if err != nil {
		return nil, err
	}
	path := at.String() + "/" + stateName
	file, err := openFile(open, path)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkSize(file, path, m.state), file.Close()); err != nil {
		return m, err
	}
	return m, sizesOfShares(open, at.String(), m)
}
