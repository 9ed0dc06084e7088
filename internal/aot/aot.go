// Package aot compiles programs for machines that a plugin describes, in a child process: the same binary with a
// reserved argv[0], as in package probe.
package aot

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/lazo-ml/lazo/internal/child"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

var ErrCrash = errors.New("the compiler ended its process")

type Machine struct {
	Plugin  string
	Name    string
	Options map[string]any // see [pjrt.Plugin.NewTopology]
	// Environment is for the child, as NAME=value.
	Environment []string
}

type Device struct {
	pjrt.DeviceDescription
	Attributes map[string]any
}

type Description struct {
	API                       string
	Platform, PlatformVersion string
	Devices                   []Device
	Attributes                map[string]any
}

type Program struct {
	Text    []byte // StableHLO
	Options pjrt.CompileOptions
}

type Report struct {
	pjrt.Compiled
	HLO             string
	Took            time.Duration
	API             string
	PlatformVersion string
}

// The parent removes an order's Dir.
type order struct {
	Machine
	Program *Program // nil: describe the machine
	Dir     string
	Limit   time.Duration
}

type answer struct {
	Description *Description
	Report      *Report
	Failure     *failure
}

type failure struct {
	Text     string // without Reported's text
	Reported *pjrt.Error
	Kind     failureKinds
}

type failureKinds string

// kinds are transferable sentinels.
var kinds = map[failureKinds]error{
	"argument": pjrt.ErrInvalidArgument, "unimplemented": pjrt.ErrUnimplemented, "not found": pjrt.ErrNotFound,
	"not loadable": pjrt.ErrNotLoadable, "no symbol": pjrt.ErrNoSymbol, "no table": pjrt.ErrNoTable, "abi": pjrt.ErrABI,
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	if errors.As(err, &f.Reported) {
		f.Text = strings.TrimSuffix(strings.SplitN(f.Text, f.Reported.Call+": ", 2)[0], "pjrt: ")
		return f
	}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kind = name
		}
	}
	return f
}

func (f *failure) err() error {
	if f.Reported != nil {
		return fmt.Errorf("%s%w", f.Text, f.Reported)
	}
	return &remote{f.Text, kinds[f.Kind]}
}

type remote struct {
	text string
	is   error
}

func (r *remote) Error() string        { return r.text }
func (r *remote) Is(target error) bool { return r.is != nil && target == r.is }

func (m Machine) Describe(ctx context.Context, limit time.Duration) (*Description, error) {
	a, err := m.run(ctx, nil, limit)
	if err != nil {
		return nil, err
	}
	if a.Description == nil {
		return nil, errors.New("aot: the child described no machine")
	}
	return a.Description, nil
}

// Compile compiles a program. After limit the error wraps [pjrt.ErrDeadline]. A child that dies is [ErrCrash], with its
// last output; a plugin's error is a [*pjrt.Error].
func (m Machine) Compile(ctx context.Context, p Program, limit time.Duration) (*Report, error) {
	a, err := m.run(ctx, &p, limit)
	if err != nil {
		return nil, err
	}
	if a.Report == nil {
		return nil, errors.New("aot: the child reported no program")
	}
	return a.Report, nil
}

func (m Machine) run(ctx context.Context, p *Program, limit time.Duration) (_ *answer, err error) {
	dir, err := os.MkdirTemp("", "lazo-compile-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	said := child.Tail{Limit: 8 * child.TextLimit}
	cmd, err := m.command(limited, dir)
	if err != nil {
		return nil, err
	}
	cmd.Stderr, cmd.Stdout = &said, &said
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer answers.Close()
	cmd.ExtraFiles = []*os.File{theirs}
	// The child ends with its input.
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	theirs.Close()
	if err != nil {
		return nil, err
	}
	go func() { _ = gob.NewEncoder(input).Encode(order{m, p, dir, limit}) }() // a dead child is reported below
	stop := context.AfterFunc(limited, func() { _ = answers.SetReadDeadline(time.Now()) })
	var got answer
	readErr := gob.NewDecoder(answers).Decode(&got)
	stop()
	if readErr == nil {
		_ = cmd.Cancel() // libraries may be slow to end
	}
	waitErr := cmd.Wait()
	switch {
	case readErr == nil && got.Failure == nil:
		return &got, nil
	case readErr == nil:
		return nil, got.Failure.err()
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case limited.Err() != nil:
		return nil, fmt.Errorf("%w: no end after %v%s", pjrt.ErrDeadline, limit, after(&said))
	case waitErr == nil:
		return nil, fmt.Errorf("the child's answer cannot be read: %w%s", readErr, after(&said))
	}
	return nil, crash(waitErr, &said)
}

func crash(waitErr error, said *child.Tail) error {
	signal := child.Signal(waitErr)
	switch signal {
	case 0:
		return fmt.Errorf("%w (%w)%s", ErrCrash, waitErr, after(said))
	case syscall.SIGKILL:
		return fmt.Errorf("%w: it was killed, possibly because the machine ran out of memory%s", ErrCrash, after(said))
	}
	if found := fatal.FindStringSubmatch(said.String()); found != nil { // other lines are traces
		return fmt.Errorf("%w: it died of %s: %s", ErrCrash, child.SignalName(signal), found[1])
	}
	return fmt.Errorf("%w: it died of %s%s", ErrCrash, child.SignalName(signal), after(said))
}

var fatal = regexp.MustCompile(`(?m)^F\d{4} [^\]]*?([^ \]]+:\d+\] .*)$`)

func after(said *child.Tail) string {
	if text := said.String(); text != "" {
		if extra := len(text) - child.TextLimit; extra > 0 {
			text = strings.ToValidUTF8(text[extra:], "")
		}
		return "\nlast output of the compiler:\n" + text
	}
	return ""
}

func (m Machine) command(ctx context.Context, dir string) (*exec.Cmd, error) {
	cmd, err := child.Command(ctx, childName)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), m.Environment...)
	for name, value := range pjrt.Environment(m.Plugin, os.Getenv) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+dir) // removes a killed assembler's files
	return cmd, nil
}

const childName = "lazo: compiler"

func init() {
	if len(os.Args) != 1 || os.Args[0] != childName {
		return
	}
	pjrt.DieBySignal()
	var do order
	if err := gob.NewDecoder(os.Stdin).Decode(&do); err != nil {
		os.Exit(2)
	}
	time.AfterFunc(do.Limit+time.Second, func() { os.Exit(3) })
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = os.RemoveAll(do.Dir) // the dead parent cannot
		os.Exit(4)
	}()
	a, err := do.run()
	if err != nil {
		a = answer{Failure: failureOf(err)}
	}
	// One write: a partial answer would look malformed.
	var whole bytes.Buffer
	if err := gob.NewEncoder(&whole).Encode(a); err != nil {
		whole.Reset()
		_ = gob.NewEncoder(&whole).Encode(answer{Failure: failureOf(err)})
	}
	if _, err := os.NewFile(3, "answers").Write(whole.Bytes()); err != nil {
		os.Exit(5)
	}
	os.Exit(0)
}

func (do order) run() (answer, error) {
	plugin, err := pjrt.Load(do.Plugin)
	if err != nil {
		return answer{}, err
	}
	topology, err := plugin.NewTopology(do.Name, do.Options)
	if err != nil {
		return answer{}, err
	}
	if do.Program == nil {
		return answer{Description: describe(plugin, topology)}, nil
	}
	start := time.Now()
	compiled, err := topology.Compile(do.Program.Text, Dumping(do.Program.Options, do.Dir))
	if err != nil {
		return answer{}, err
	}
	r := &Report{Compiled: *compiled, Took: time.Since(start), API: plugin.Version().String(), PlatformVersion: topology.PlatformVersion()}
	r.HLO, err = Dumped(do.Dir)
	r.Optimized = nil // HLO has the text
	return answer{Report: r}, err
}

func Dumping(options pjrt.CompileOptions, dir string) pjrt.CompileOptions {
	debug := map[string]any{"xla_dump_to": dir, "xla_dump_hlo_as_text": true}
	maps.Copy(debug, options.Debug)
	options.Debug = debug
	return options
}

func Dumped(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*after_optimizations.txt"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	// Auxiliary programs have later numbers.
	text, err := os.ReadFile(slices.Min(files))
	return string(text), err
}

func describe(plugin *pjrt.Plugin, t *pjrt.Topology) *Description {
	d := &Description{API: plugin.Version().String(), Platform: t.Platform(), PlatformVersion: t.PlatformVersion(), Attributes: t.Attributes()}
	more := t.DeviceAttributes()
	for i, device := range t.Devices() {
		d.Devices = append(d.Devices, Device{device, more[i]})
	}
	return d
}
