package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
)

type objects struct{ store Store }

func (o objects) names(ctx context.Context) ([]string, error) {
	keys, err := o.store.Keys(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, key := range keys {
		if name, ok := strings.CutSuffix(key, "/"+commitName); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

func (o objects) has(ctx context.Context, name string) (bool, error) {
	_, err := o.store.Size(ctx, name+"/"+commitName)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func (o objects) open(ctx context.Context, path string) (file, error) {
	size, err := o.store.Size(ctx, path)
	if err != nil {
		return nil, err
	}
	return &object{ctx: ctx, store: o.store, key: path, size: size}, nil
}

func (objects) close(bool) error { return nil }

func (o objects) put(ctx context.Context, name string, w writing) error {
	err := o.write(ctx, name, w)
	if err != nil {
		err = errors.Join(err, o.remove(context.WithoutCancel(ctx), []string{name}))
	}
	return err
}

func (o objects) write(ctx context.Context, name string, w writing) error {
	create := func(file string, write func(io.Writer) error) error { return o.store.Put(ctx, name+"/"+file, write) }
	text, err := w.files(create, func(path string) (file, error) { return o.open(ctx, path) }, name)
	if err != nil {
		return err
	}
	// COMMIT comes last.
	err = w.readBack(func(path string) (file, error) {
		if path == name+"/"+commitName {
			return inMemory{bytes.NewReader(text)}, nil
		}
		return o.open(ctx, path)
	}, name)
	if err == nil {
		err = w.last()
	}
	if err != nil {
		return err
	}
	return create(commitName, bytesOf(text))
}

func (objects) begin(context.Context, string) error { return nil }

func (o objects) giveUp(ctx context.Context, name, _ string) error {
	return o.remove(ctx, []string{name})
}

func (o objects) share(ctx context.Context, name, _, file string, write func(io.Writer) error) error {
	return o.store.Put(ctx, name+"/"+file, write)
}

func (o objects) mark(ctx context.Context, name, _, mark, text string) error {
	return o.store.Put(ctx, name+"/"+mark, bytesOf([]byte(text)))
}

func (o objects) note(ctx context.Context, name, text string) error {
	return o.store.Put(ctx, name, bytesOf([]byte(text)))
}

func (o objects) forget(ctx context.Context, name string) error { return o.delete(ctx, name) }

// remove deletes COMMIT first. It lists all keys to find other ranks' files: the manifest may be missing.
func (o objects) remove(ctx context.Context, names []string) error {
	for _, file := range []string{commitName, manifestName, stateName} {
		for _, name := range names {
			if err := o.delete(ctx, name+"/"+file); err != nil {
				return err
			}
		}
	}
	keys, err := o.store.Keys(ctx)
	if err != nil {
		return err
	}
	for _, key := range keys {
		name, file, _ := strings.Cut(key, "/")
		if _, ours := shareRank(file); ours && slices.Contains(names, name) {
			if err := o.delete(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}

func (o objects) delete(ctx context.Context, key string) error {
	err := o.store.Delete(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (o objects) clean(ctx context.Context, removed func(name string)) error {
	keys, err := o.store.Keys(ctx)
	if err != nil {
		return err
	}
	complete := map[string]bool{}
	for _, key := range keys {
		if name, ok := strings.CutSuffix(key, "/"+commitName); ok {
			complete[name] = true
		}
	}
	for _, key := range keys {
		name, file, _ := strings.Cut(key, "/")
		_, share := shareRank(file)
		if _, ok := parsePlace(name); !ok || complete[name] || file != stateName && file != manifestName && !share {
			continue
		}
		if err := o.delete(ctx, key); err != nil {
			return fmt.Errorf("remove files of an incomplete earlier save: %w", err)
		}
		removed(key)
	}
	return nil
}

type inMemory struct{ *bytes.Reader }

func (m inMemory) Size() (int64, error) { return m.Reader.Size(), nil }
func (inMemory) Close() error           { return nil }

// window is a request's size; each takes tens of milliseconds.
const window = 8 << 20

// object reads ahead: files are read in small pieces.
type object struct {
	ctx   context.Context
	store Store
	key   string
	size  int64

	mu    sync.Mutex
	ahead []byte
	at    int64
}

func (o *object) Size() (int64, error) { return o.size, nil }

func (o *object) Close() error {
	o.ahead = nil
	return nil
}

func (o *object) ReadAt(p []byte, offset int64) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	done := 0
	for done < len(p) && offset+int64(done) < o.size {
		part, err := o.from(offset + int64(done))
		if err != nil {
			return done, err
		}
		done += copy(p[done:], part)
	}
	if done < len(p) {
		return done, io.EOF
	}
	return done, nil
}

func (o *object) from(offset int64) ([]byte, error) {
	if i := offset - o.at; i >= 0 && i < int64(len(o.ahead)) {
		return o.ahead[i:], nil
	}
	want := min(window, o.size-offset)
	if int64(cap(o.ahead)) < want {
		o.ahead = make([]byte, want)
	}
	o.at = offset
	n, err := o.store.ReadAt(o.ctx, o.key, o.ahead[:want], offset)
	o.ahead = o.ahead[:max(n, 0)]
	switch {
	case n > 0 && (err == nil || errors.Is(err, io.EOF)):
		return o.ahead, nil
	case err == nil:
		err = io.ErrNoProgress
	}
	o.ahead = o.ahead[:0]
	return nil, err
}
