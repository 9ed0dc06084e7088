// Package aot compiles programs ahead of time, for machines that a plugin describes and that need not be there. It does
// so in a child process: compilers end theirs for programs that they do not take, and what a plugin reads of the
// environment is the child's alone.
//
// The child is the program's own binary, started once more, as with package xla/probe: an init function sees a reserved
// argv[0] and works in place of the program.
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
	"github.com/lazo-ml/lazo/xla/pjrt"
)

// ErrCrash: the compiler ended its process.
var ErrCrash = errors.New("the compiler ended its process")

// Machine is a machine for which programs are compiled.
type Machine struct {
	Plugin  string         // path of the library
	Name    string         // of the topology, as the plugin takes it
	Options map[string]any // of the topology: see [pjrt.Plugin.NewTopology]
	// Environment are variables that the child gets beside the process's own, NAME=value.
	Environment []string
}

// Device is a described device.
type Device struct {
	pjrt.DeviceDescription
	Attributes map[string]any
}

// Description is what a plugin tells of a machine.
type Description struct {
	API                       string
	Platform, PlatformVersion string
	Devices                   []Device
	Attributes                map[string]any
}

// Program is a program to be compiled.
type Program struct {
	Text    []byte // StableHLO
	Options pjrt.CompileOptions
}

// Report is what a plugin tells of a program that it compiled.
type Report struct {
	pjrt.Compiled
	HLO             string // the optimized program as text; "" where the plugin writes none
	Took            time.Duration
	API             string
	PlatformVersion string
}

// order is what the child is to do, and Dir a folder for it that its parent removes.
type order struct {
	Machine
	Program *Program // nil: describe the machine
	Dir     string
	Limit   time.Duration
}

// answer is what the child says.
type answer struct {
	Description *Description
	Report      *Report
	Failure     *failure
}

// failure is an error on its way from the child to the parent.
type failure struct {
	Text     string       // what was being done, and the error, unless Reported says it
	Reported *pjrt.Error  // the plugin's
	Kind     failureKinds // what Go's side found
}

type failureKinds string

// kinds are the errors that keep their identity on the way.
var kinds = map[failureKinds]error{
	"argument": pjrt.ErrInvalidArgument, "unimplemented": pjrt.ErrUnimplemented, "not found": pjrt.ErrNotFound,
	"not loadable": pjrt.ErrNotLoadable, "no symbol": pjrt.ErrNoSymbol, "no table": pjrt.ErrNoTable, "abi": pjrt.ErrABI,
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	if errors.As(err, &f.Reported) {
		f.Text, _, _ = strings.Cut(f.Text, f.Reported.Call+": ")
		return f
	}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			f.Kind = name
		}
	}
	return f
}

// err is the failure as the child had it.
func (f *failure) err() error {
	if f.Reported != nil {
		return fmt.Errorf("%s%w", f.Text, f.Reported)
	}
	return &remote{f.Text, kinds[f.Kind]}
}

// remote is an error of the child: its text, and the sentinel that it matched.
type remote struct {
	text string
	is   error
}

func (r *remote) Error() string        { return r.text }
func (r *remote) Is(target error) bool { return r.is != nil && target == r.is }

// Describe asks the plugin for its description of the machine.
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

// Compile compiles a program for the machine. The child takes limit at most: the error wraps [pjrt.ErrDeadline] then.
// One that dies is [ErrCrash], with the end of what it said; what the plugin reported is a [*pjrt.Error].
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

// run has a child do one thing.
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
	// The child takes the end of its input for the end of its parent.
	input, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	theirs.Close()
	if err != nil {
		return nil, err
	}
	go func() { _ = gob.NewEncoder(input).Encode(order{m, p, dir, limit}) }() // a child that is gone says why below
	stop := context.AfterFunc(limited, func() { _ = answers.SetReadDeadline(time.Now()) })
	var got answer
	readErr := gob.NewDecoder(answers).Decode(&got)
	stop()
	if readErr == nil {
		_ = cmd.Cancel() // nothing of it is wanted any more; libraries may take their time to end
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

// crash is the error of a child that died.
func crash(waitErr error, said *child.Tail) error {
	signal := child.Signal(waitErr)
	switch signal {
	case 0:
		return fmt.Errorf("%w (%w)%s", ErrCrash, waitErr, after(said))
	case syscall.SIGKILL:
		return fmt.Errorf("%w: somebody killed it: there may have been no memory left%s", ErrCrash, after(said))
	}
	if found := fatal.FindStringSubmatch(said.String()); found != nil { // what stands beside it are traces
		return fmt.Errorf("%w: it died of %s: %s", ErrCrash, child.SignalName(signal), found[1])
	}
	return fmt.Errorf("%w: it died of %s%s", ErrCrash, child.SignalName(signal), after(said))
}

// fatal is the line in XLA's log that says why it ends the process: a check that failed, and where it stands.
var fatal = regexp.MustCompile(`(?m)^F\d{4} [^\]]*?([^ \]]+:\d+\] .*)$`)

// after is the last output of a child, if it said anything.
func after(said *child.Tail) string {
	if text := said.String(); text != "" {
		if extra := len(text) - child.TextLimit; extra > 0 {
			text = strings.ToValidUTF8(text[extra:], "")
		}
		return "\nlast output of the compiler:\n" + text
	}
	return ""
}

// command is the child: this binary under the reserved name.
func (m Machine) command(ctx context.Context, dir string) (*exec.Cmd, error) {
	cmd, err := child.Command(ctx, childName)
	if err != nil {
		return nil, err
	}
	cmd.Env = append(os.Environ(), m.Environment...)
	for name, value := range pjrt.Environment(m.Plugin, os.Getenv) {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Env = append(cmd.Env, "TMPDIR="+dir) // what an assembler leaves when it is killed
	return cmd, nil
}

// childName is the argv[0] of the child.
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
		_ = os.RemoveAll(do.Dir) // the parent is gone, which would have done it
		os.Exit(4)
	}()
	a, err := do.run()
	if err != nil {
		a = answer{Failure: failureOf(err)}
	}
	// At once: a reader that is killed with the half of it would take it for the whole of a broken one.
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

// run is the work of the child.
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
	r.Optimized = nil // the text is wanted
	return answer{Report: r}, err
}

// Dumping has XLA dump what it makes of a program into a folder: see [Dumped].
func Dumping(options pjrt.CompileOptions, dir string) pjrt.CompileOptions {
	debug := map[string]any{"xla_dump_to": dir, "xla_dump_hlo_as_text": true}
	maps.Copy(debug, options.Debug)
	options.Debug = debug
	return options
}

// Dumped is the text of the optimized program in a folder that XLA dumped into; "" if there is none.
func Dumped(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*after_optimizations.txt"))
	if err != nil || len(files) == 0 {
		return "", err
	}
	// Programs that the compiler makes on its way are numbered behind the one it was given, and are smaller.
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
