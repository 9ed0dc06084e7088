package xla

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lazo-ml/lazo/internal/owners"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

type cache struct {
	dir   string
	limit int64
	// The part of the key that programs share.
	on   string
	log  *slog.Logger
	hits atomic.Int64

	room *room
}

// room is shared by a process's runtimes: counting a folder of thousands of entries for each takes too long.
type room struct {
	sync.Mutex
	bytes int64 // until the next count of the folder
}

var rooms sync.Map // a *room by the folder and its limit

const (
	cacheMagic  = "lazo compiled program 2\n"
	cacheSuffix = ".xla"
)

func (c *cache) open(from origin, client *pjrt.Client, options map[string]any, log *slog.Logger) (*cache, error) {
	opened, err := c.folder(log)
	if err != nil {
		return nil, err
	}
	var devices []string
	for _, d := range client.AddressableDevices() {
		devices = append(devices, fmt.Sprint(d.ID(), d.Kind()))
	}
	// XLA divides CPU work by the number of processors.
	opened.on = fmt.Sprintf("%+v\n%v\n%v\n%s\n%s\n%s %s %d\n%s\n%s", from.file, from.environment, options, client.Platform(), client.PlatformVersion(),
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), strings.Join(devices, "\n"), processor())
	return opened, nil
}

func (c *cache) folder(log *slog.Logger) (*cache, error) {
	opened := &cache{dir: c.dir, limit: c.limit, log: log}
	if opened.dir == "" {
		user, err := owners.Cache()
		if err != nil {
			return nil, fmt.Errorf("xla: compile cache: %w (give CompileCache a folder)", err)
		}
		opened.dir = filepath.Join(user, "lazo", "compiled")
	}
	if err := os.MkdirAll(opened.dir, 0o700); err != nil {
		return nil, fmt.Errorf("xla: compile cache: %w", err)
	}
	if err := owners.Folder(opened.dir); err != nil {
		return nil, fmt.Errorf("xla: compile cache: %w", err)
	}
	of, _ := rooms.LoadOrStore(fmt.Sprintf("%d %s", opened.limit, opened.dir), new(room))
	opened.room = of.(*room)
	return opened, nil
}

// Machines without /proc/cpuinfo share nothing.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		name, _ := os.Hostname()
		return name
	}
	first, _, _ := bytes.Cut(text, []byte("\n\n"))
	var kept []string
	for line := range strings.Lines(string(first)) {
		for _, name := range []string{"model name", "flags", "Features", "CPU part"} {
			if strings.HasPrefix(line, name) {
				kept = append(kept, line)
			}
		}
	}
	return strings.Join(kept, "")
}

func (c *cache) file(program string, options pjrt.CompileOptions) string {
	key := sha256.New()
	fmt.Fprintf(key, "%s%s\n%+v\n%s", cacheMagic, c.on, options, program)
	return filepath.Join(c.dir, fmt.Sprintf("%x", key.Sum(nil))+cacheSuffix)
}

func (c *cache) compile(client *pjrt.Client, program string, options pjrt.CompileOptions, compile func() (*pjrt.Executable, error)) (*pjrt.Executable, fromCache, error) {
	if e := c.find(client, program, options); e != nil {
		return e, cacheHit, nil
	}
	return c.fill(program, options, compile)
}

func (c *cache) find(client *pjrt.Client, program string, options pjrt.CompileOptions) *pjrt.Executable {
	if c == nil {
		return nil
	}
	name := c.file(program, options)
	e, err := c.load(client, name)
	if err == nil {
		c.used(name)
		return e
	}
	if !errors.Is(err, fs.ErrNotExist) {
		c.warn("load", name, err)
	}
	return nil
}

func (c *cache) fill(program string, options pjrt.CompileOptions, compile func() (*pjrt.Executable, error)) (*pjrt.Executable, fromCache, error) {
	e, err := compile()
	if c == nil {
		return e, cacheOff, err
	}
	if err != nil {
		return nil, cacheMiss, err
	}
	name := c.file(program, options)
	c.warn("keep", name, c.keep(e, name))
	return e, cacheMiss, nil
}

func (c *cache) used(name string) {
	c.hits.Add(1)
	now := time.Now()
	c.warn("mark as used", name, os.Chtimes(name, now, now))
}

func (c *cache) load(client *pjrt.Client, name string) (*pjrt.Executable, error) {
	compiled, err := c.read(name)
	if err != nil {
		return nil, err
	}
	return client.Load(compiled)
}

func (c *cache) read(name string) ([]byte, error) {
	const head = len(cacheMagic) + sha256.Size
	entry, err := owners.ReadFile(name, int64(head)+min(c.limit, math.MaxInt64-int64(head)-1))
	if err != nil {
		return nil, err
	}
	if len(entry) < head || string(entry[:len(cacheMagic)]) != cacheMagic {
		return nil, errors.New("it is not a compiled program of lazo")
	}
	compiled := entry[head:]
	if !bytes.Equal(entryDigest(name, compiled), entry[len(cacheMagic):head]) {
		return nil, errors.New("it is damaged, or the entry of another program: its digest does not match")
	}
	return compiled, nil
}

// The key is included: a renamed file must not run as another program.
func entryDigest(name string, compiled []byte) []byte {
	h := sha256.New()
	h.Write([]byte(filepath.Base(name)))
	h.Write(compiled)
	return h.Sum(nil)
}

func (c *cache) keep(e *pjrt.Executable, name string) error {
	compiled, err := e.Serialize()
	if err != nil {
		return err
	}
	return c.write(name, compiled)
}

func (c *cache) write(name string, compiled []byte) error {
	if int64(len(compiled)) > c.limit {
		return nil
	}
	if err := writeWhole(name, []byte(cacheMagic), entryDigest(name, compiled), compiled); err != nil {
		return err
	}
	c.room.Lock()
	defer c.room.Unlock()
	if c.room.bytes -= int64(len(compiled)); c.room.bytes < 0 {
		return c.trim(name)
	}
	return nil
}

// trim removes the least recently used entries, except newest. The next count waits for an eighth of the free room.
func (c *cache) trim(newest string) error {
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	total := int64(0)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(entry.Name()) != cacheSuffix {
			continue
		}
		files, total = append(files, info), total+info.Size()
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total <= c.limit {
			break
		}
		if f.Name() == filepath.Base(newest) {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, f.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= f.Size()
	}
	c.room.bytes = (c.limit - total) / 8
	return nil
}

func (c *cache) warn(what, name string, err error) {
	if err != nil {
		c.log.Warn("xla: compile cache", "what", what, "file", name, "error", err)
	}
}

// writeWhole is atomic.
func writeWhole(name string, parts ...[]byte) error {
	temp, err := os.CreateTemp(filepath.Dir(name), ".lazo-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // fails after the rename
	for _, part := range parts {
		if err == nil {
			_, err = temp.Write(part)
		}
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), name)
}
