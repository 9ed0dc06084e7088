package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/lazo-ml/lazo/data"
	"github.com/lazo-ml/lazo/flaxlike"
	"github.com/lazo-ml/lazo/serve"
)

type serveCommand struct {
	Path     string        `arg:"" help:"File that Model.Save wrote; or a folder of such files, NAME.safetensors, and of folders NAME with versions of a model, 1.safetensors, 2.safetensors and so on; or a folder of the Hugging Face hub, or a file .gguf, for OpenAI's clients."`
	Listen   string        `default:"localhost:8000" help:"Address to answer at. Without --key there is no password: other machines reach it only through a proxy that has one."`
	MaxBatch int           `default:"64" help:"Most examples of a batch, and of a request, of saved models."`
	Delay    time.Duration `default:"0s" help:"How long a request to saved models may wait for others of its batch."`
	MaxBody  int64         `default:"16777216" help:"Most bytes of a request."`
	Timeout  time.Duration `default:"1m" help:"How long a request may take; 5m for a model of the hub if it is not given."`
	Reload   time.Duration `default:"5s" help:"How often to look for files of saved models that are new, changed or gone; 0s: never."`
	Drain    time.Duration `default:"1s" help:"How long to answer after a signal: longer than a client takes to see that the server is not ready."`
	Log      string        `enum:"text,json" default:"text" help:"Form of the log, on stderr: text or json."`
	Key      string        `placeholder:"VARIABLE" help:"Environment variable with the key that requests to a model of the hub need."`
	Name     string        `help:"Name of a model of the hub in requests; that on the hub or of the folder if it is not given."`
	Places   int           `default:"2048" help:"Most tokens of a prompt with its answer, of a model of the hub, as far as it takes them."`
	adapterFlag
}

func (c serveCommand) Run(s session, k *kong.Context) (err error) {
	if c.Reload < 0 || c.Drain < 0 {
		return fmt.Errorf("--reload is %v and --drain is %v, expected 0 or more", c.Reload, c.Drain)
	}
	log := slog.New(slog.NewTextHandler(s.stderr, nil))
	if c.Log == "json" {
		log = slog.New(slog.NewJSONHandler(s.stderr, nil))
	}
	if isPretrained(c.Path) {
		if err := onlyFor(k, "saved models, and this is a model of the hub", "max-batch", "delay", "reload"); err != nil {
			return err
		}
		if !given(k, "timeout") {
			c.Timeout = 5 * time.Minute
		}
		return c.pretrained(s, log)
	}
	if err := onlyFor(k, "a model of the hub, a folder with config.json or a file .gguf", "key", "name", "places", "adapter"); err != nil {
		return err
	}
	handler, err := serve.NewHandler(nil, serve.Options{MaxBody: c.MaxBody, Timeout: c.Timeout, Log: log})
	if err != nil {
		return err
	}
	served := &served{handler: handler, set: serve.Batching{MaxBatch: c.MaxBatch, Delay: c.Delay}, root: c.Path, of: map[place]saved{}}
	defer func() { err = errors.Join(err, served.close()) }()
	if err := served.load(s.ctx); err != nil {
		return err
	}
	if len(served.of) == 0 {
		return fmt.Errorf("%s: there is no model, expected files NAME.safetensors, or NAME/1.safetensors; or config.json of a model of the hub", c.Path)
	}
	logged := ""
	return c.listen(s, log, handler, "/v2", handler.Drain, func() {
		text := ""
		if err := served.load(s.ctx); err != nil && s.ctx.Err() == nil { // what was served is served
			if text = err.Error(); text != logged { // a wrong name is an error at each look
				log.Error("reload", "error", text)
			}
		}
		logged = text
	})
}

// Until a signal, which calls drain; reload, if not nil, is called meanwhile.
func (c serveCommand) listen(s session, log *slog.Logger, handler http.Handler, path string, drain, reload func()) error {
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(s.stdout, "http://%s%s\n", listener.Addr(), path)
	var look <-chan time.Time
	if c.Reload > 0 && reload != nil {
		ticker := time.NewTicker(c.Reload)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-look:
			reload()
		case <-s.ctx.Done():
			drain()
			time.Sleep(c.Drain)
			grace, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), c.Timeout+time.Second)
			defer cancel()
			return server.Shutdown(grace)
		}
	}
}

type place struct {
	name    string
	version int
}

type saved struct {
	path     string
	size     int64
	modified time.Time
	model    *flaxlike.Model
	batcher  *serve.Batcher
}

func (s saved) same(as saved) bool {
	return s.path == as.path && s.size == as.size && s.modified.Equal(as.modified)
}

func (s saved) close() error {
	if s.model == nil {
		return nil
	}
	return errors.Join(s.batcher.Close(), s.model.Close())
}

type served struct {
	handler *serve.Handler
	set     serve.Batching
	root    string
	of      map[place]saved
}

// load serves new and changed files, and drops missing ones. One that cannot be opened keeps its earlier model until
// it changes.
func (s *served) load(ctx context.Context) error {
	found, err := find(s.root)
	if found == nil {
		return err
	}
	all := []error{err}
	for at, file := range found {
		if before, ok := s.of[at]; !ok || !before.same(file) {
			all = append(all, s.replace(ctx, at, file))
		}
	}
	for at, gone := range s.of {
		if _, ok := found[at]; ok {
			continue
		}
		delete(s.of, at)
		if gone.model != nil {
			_, err := s.handler.Unload(at.name, at.version)
			all = append(all, err, gone.close())
		}
	}
	return errors.Join(all...)
}

func (s *served) replace(ctx context.Context, at place, file saved) error {
	before := s.of[at]
	var err error
	if file.model, file.batcher, err = s.open(ctx, file.path); err != nil {
		file.model, file.batcher = before.model, before.batcher
		s.of[at] = file
		return fmt.Errorf("%s: %w", file.path, err)
	}
	s.of[at] = file
	_, err = s.handler.Load(at.name, at.version, file.batcher)
	return errors.Join(err, before.close())
}

func (s *served) open(ctx context.Context, path string) (*flaxlike.Model, *serve.Batcher, error) {
	m, err := flaxlike.Open(ctx, path)
	if err != nil {
		return nil, nil, ofProgram(path, err)
	}
	var example data.Batch
	for _, in := range m.Describe().Inputs {
		if m.Preparation() != nil { // its columns are the inputs
			break
		}
		kind, ok := types[in.Type]
		if !ok {
			return nil, nil, errors.Join(fmt.Errorf("the input %q is %s, which cannot be served", in.Name, in.Type), m.Close())
		}
		size := 1
		for _, n := range in.Dims {
			size *= n
		}
		zeros := reflect.MakeSlice(reflect.SliceOf(kind), size, size).Interface()
		example.Fields = append(example.Fields, data.Named(in.Name, zeros, append([]int{1}, in.Dims...)...))
	}
	b, err := serve.New(m, example, s.set)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	if err := b.Warm(ctx); err != nil {
		return nil, nil, errors.Join(err, b.Close(), m.Close())
	}
	return m, b, nil
}

func (s *served) close() (err error) {
	for _, of := range s.of {
		err = errors.Join(err, of.close())
	}
	return err
}

const savedSuffix = ".safetensors"

// find returns models' files by name and version, with an error for invalid ones, or nil if it cannot read root.
func find(root string) (_ map[place]saved, wrong error) {
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	found := map[place]saved{}
	add := func(at place, path string, info fs.FileInfo) {
		found[at] = saved{path: path, size: info.Size(), modified: info.ModTime()}
	}
	if !info.IsDir() {
		add(place{strings.TrimSuffix(filepath.Base(root), filepath.Ext(root)), 1}, root, info)
		return found, nil
	}
	files := os.DirFS(root)
	for _, pattern := range []string{"*" + savedSuffix, "*/*" + savedSuffix} {
		paths, err := fs.Glob(files, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range paths {
			info, err := fs.Stat(files, file)
			if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(file, ".") || strings.HasPrefix(path.Base(file), ".") {
				continue // it may be gone meanwhile
			}
			whole := filepath.Join(root, filepath.FromSlash(file))
			name := strings.TrimSuffix(path.Base(file), savedSuffix)
			at := place{name, 1}
			if dir := path.Dir(file); dir != "." {
				version, err := strconv.Atoi(name)
				if err != nil || version < 1 {
					wrong = errors.Join(wrong, fmt.Errorf("%s: expected the name of a version, as 1%s", whole, savedSuffix))
					continue
				}
				at = place{dir, version}
			}
			if other, ok := found[at]; ok {
				wrong = errors.Join(wrong, fmt.Errorf("%s and %s are version %d of one model, expected one of them", other.path, whole, at.version))
				continue
			}
			add(at, whole, info)
		}
	}
	return found, wrong
}
