package vfs

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Mem is a file system in memory that knows which content is durable ([Mem.Crash]), initially empty.
type Mem struct {
	mu   sync.Mutex
	root node
}

type node struct {
	dir             bool
	names, kept     map[string]*node
	content, synced []byte // append-only: copies may share them
	locked          bool
}

func (m *Mem) lock() func() {
	m.mu.Lock()
	m.root.dir = true
	return m.mu.Unlock
}

func (m *Mem) find(op, name string) (*node, error) {
	if err := checkName(op, name); err != nil {
		return nil, err
	}
	n := &m.root
	if name == "." {
		return n, nil
	}
	for part := range strings.SplitSeq(name, "/") {
		if !n.dir {
			return nil, fail(op, name, errNoDir)
		}
		if n = n.names[part]; n == nil {
			return nil, fail(op, name, fs.ErrNotExist)
		}
	}
	return n, nil
}

func (m *Mem) folder(op, name string) (*node, error) {
	n, err := m.find(op, name)
	if err == nil && !n.dir {
		err = fail(op, name, errNoDir)
	}
	return n, err
}

func (m *Mem) place(op, name string) (*node, error) {
	if err := checkChild(op, name); err != nil {
		return nil, err
	}
	parent, err := m.folder(op, path.Dir(name))
	if err != nil {
		return nil, err
	}
	if parent.names[path.Base(name)] != nil {
		return nil, fail(op, name, fs.ErrExist)
	}
	return parent, nil
}

func (n *node) put(name string, child *node) {
	if n.names == nil {
		n.names = map[string]*node{}
	}
	n.names[path.Base(name)] = child
}

func (m *Mem) Create(name string) (File, error) {
	defer m.lock()()
	parent, err := m.place("create", name)
	if err != nil {
		return nil, err
	}
	n := &node{}
	parent.put(name, n)
	return &memFile{mem: m, name: name, node: n, writes: true}, nil
}

func (m *Mem) Open(name string) (File, error) {
	defer m.lock()()
	n, err := m.find("open", name)
	if err != nil {
		return nil, err
	}
	if n.dir {
		return nil, fail("open", name, errIsDir)
	}
	return &memFile{mem: m, name: name, node: n}, nil
}

func (m *Mem) Rename(from, to string) error {
	defer m.lock()()
	if err := errors.Join(checkChild("rename", from), checkChild("rename", to)); err != nil {
		return err
	}
	n, err := m.find("rename", from)
	if err != nil {
		return err
	}
	parent, err := m.place("rename", to)
	if err != nil {
		return err
	}
	if strings.HasPrefix(to, from+"/") {
		return fail("rename", to, errIrregular)
	}
	old, err := m.folder("rename", path.Dir(from))
	if err != nil {
		return err
	}
	delete(old.names, path.Base(from))
	parent.put(to, n)
	return nil
}

func (m *Mem) Remove(name string) error {
	defer m.lock()()
	if err := checkChild("remove", name); err != nil {
		return err
	}
	n, err := m.find("remove", name)
	if err != nil {
		return err
	}
	if len(n.names) > 0 {
		return fail("remove", name, errFull)
	}
	parent, err := m.folder("remove", path.Dir(name))
	if err != nil {
		return err
	}
	delete(parent.names, path.Base(name))
	return nil
}

func (m *Mem) Mkdir(name string) error {
	defer m.lock()()
	parent, err := m.place("mkdir", name)
	if err != nil {
		return err
	}
	parent.put(name, &node{dir: true})
	return nil
}

func (m *Mem) ReadDir(name string) ([]string, error) {
	defer m.lock()()
	n, err := m.folder("readdir", name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(n.names)), nil
}

func (m *Mem) Stat(name string) (Info, error) {
	defer m.lock()()
	n, err := m.find("stat", name)
	switch {
	case err != nil:
		return Info{}, err
	case n.dir:
		return Info{Type: fs.ModeDir}, nil
	}
	return Info{Size: int64(len(n.content))}, nil
}

func (m *Mem) SyncDir(name string) error {
	defer m.lock()()
	n, err := m.folder("syncdir", name)
	if err != nil {
		return err
	}
	n.kept = maps.Clone(n.names)
	return nil
}

func (m *Mem) Lock(name, note string) (io.Closer, error) {
	defer m.lock()()
	if err := checkChild("lock", name); err != nil {
		return nil, err
	}
	parent, err := m.folder("lock", path.Dir(name))
	if err != nil {
		return nil, err
	}
	n := parent.names[path.Base(name)]
	switch {
	case n == nil:
		n = &node{}
		parent.put(name, n)
	case n.dir:
		return nil, fail("lock", name, errIsDir)
	case n.locked:
		return nil, &LockedError{name, string(n.content[:min(len(n.content), noteLimit)])}
	}
	n.content, n.locked = []byte(note), true
	return &memLock{m, n, name}, nil
}

// Close does nothing: the same Mem can be opened again.
func (m *Mem) Close() error { return nil }

type memLock struct {
	mem  *Mem
	node *node
	name string
}

func (l *memLock) Close() error {
	defer l.mem.lock()()
	if l.node == nil {
		return fail("unlock", l.name, fs.ErrClosed)
	}
	l.node.locked, l.node = false, nil
	return nil
}

type memFile struct {
	mem    *Mem
	name   string
	node   *node
	writes bool
	closed bool
}

func (f *memFile) use(op string, allowed bool) error {
	switch {
	case f.closed:
		return fail(op, f.name, fs.ErrClosed)
	case !allowed:
		return fail(op, f.name, fs.ErrPermission)
	}
	return nil
}

func (f *memFile) Write(p []byte) (int, error) {
	defer f.mem.lock()()
	if err := f.use("write", f.writes); err != nil {
		return 0, err
	}
	f.node.content = append(f.node.content, p...)
	return len(p), nil
}

func (f *memFile) ReadAt(p []byte, offset int64) (int, error) {
	defer f.mem.lock()()
	if err := f.use("read", !f.writes && offset >= 0); err != nil {
		return 0, err
	}
	if offset >= int64(len(f.node.content)) {
		return 0, io.EOF
	}
	n := copy(p, f.node.content[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) Sync() error {
	defer f.mem.lock()()
	if err := f.use("sync", true); err != nil {
		return err
	}
	f.node.synced = slices.Clip(f.node.content)
	return nil
}

func (f *memFile) Size() (int64, error) {
	defer f.mem.lock()()
	if err := f.use("stat", true); err != nil {
		return 0, err
	}
	return int64(len(f.node.content)), nil
}

func (f *memFile) Close() error {
	defer f.mem.lock()()
	if err := f.use("close", true); err != nil {
		return err
	}
	f.closed = true
	return nil
}
