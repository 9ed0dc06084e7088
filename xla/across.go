package xla

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/gomlx/compute"

	"github.com/lazo-ml/lazo/internal/joined"
	"github.com/lazo-ml/lazo/internal/pjrt"
)

// Job is a job of several processes, as dist.Join returns. All ranks call Agree, EachSame, Broadcast and AllGather in
// one order. Its own Store is that of [WithStore] by default.
type Job interface {
	Store
	Rank() int
	Size() int
	// Agree sets each word to its maximum over all ranks.
	Agree(words []int64) error
	// EachSame reports for each number whether all ranks pass the same, except for its sign bit. what is for messages.
	EachSame(what string, numbers ...int64) (same []bool, err error)
	// Broadcast returns rank 0's data on all ranks, AllGather the data of all ranks, by rank.
	Broadcast(data []byte) ([]byte, error)
	AllGather(data []byte) ([][]byte, error)
	// Busy announces a phase of up to limit, which done ends.
	Busy(doing string, limit time.Duration) (done func())
	// Handlers are the C functions, by name, with which a CPU's programs exchange values; none if they cannot. Rewrite
	// turns a serialized HloModuleProto with XLA's collectives into one that calls them.
	Handlers() map[string]unsafe.Pointer
	Rewrite(module []byte) ([]byte, error)
}

// Store keeps small values that the processes of a job exchange: see dist.Store.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	TryGet(ctx context.Context, key string) ([]byte, error)
}

// Across opens the runtime for all processes of a job. A mesh of [Runtime.NumDevices] devices has those of all
// processes, rank 0's first. One process changes nothing; a nil job is an error.
//
// A CPU process is one device and exchanges values by MPI. Accelerator processes have equally many devices and exchange
// values by XLA's collectives. Open waits for them, and fails in all if it fails in one.
//
// All processes must make and run the same programs in the same order: differences are dist.ErrDisagree.
func Across(job Job) Option {
	return func(o *options) {
		if of := reflect.ValueOf(job); !of.IsValid() || of.Kind() == reflect.Pointer && of.IsNil() {
			o.err = errors.New("xla: Across is given no job: see dist.Join")
			return
		}
		o.job = job
	}
}

// WithStore replaces the job's own store for its GPU plugins ([Across]). The store must work until the runtime is
// closed. It is an error for CPUs and TPUs.
func WithStore(store Store) Option {
	return func(o *options) {
		if store == nil {
			o.err = errors.New("xla: WithStore is given no store")
		}
		o.store = store
	}
}

// Job returns [Across]'s job, nil for a single process.
func (r *Runtime) Job() Job {
	if a := r.across(); a != nil {
		return a.job
	}
	return nil
}

func (r *Runtime) across() *across {
	if r == nil {
		return nil
	}
	if c, ok := r.Backend.(*client); ok {
		return c.across
	}
	return nil
}

// Local returns this process's devices of a mesh: n devices from index first. Programs take and return only their
// values.
func (r *Runtime) Local(m Mesh) (first, n int) {
	n = m.Devices()
	if a := r.across(); a != nil && n > 1 {
		return a.job.Rank() * a.own(), a.own()
	}
	return 0, n
}

var apart struct{ across, told atomic.Bool }

// tellApart warns once, at rank 0, that ranks train alone. If only one rank forgot [Across], its note explains the
// others' failure. Runtimes after one with Across are intended.
func tellApart(o *options) {
	job := joined.Now()
	if o.job != nil {
		apart.across.Store(true)
		if job != nil {
			job.Note("")
		}
		return
	}
	if job == nil || apart.across.Load() {
		return
	}
	job.Note("it has opened a runtime without xla.Across, and computes alone: give xla.Open the option xla.Across(job)")
	if job.Rank() > 0 || apart.told.Swap(true) {
		return
	}
	const text = "xla: Open without Across in a job of several processes: each of them computes alone, and trains its own model. " +
		"Give xla.Across(job) with the job of dist.Join"
	if o.log.Enabled(context.Background(), slog.LevelWarn) {
		o.log.Warn(text, "processes", job.Size())
		return
	}
	fmt.Fprintf(os.Stderr, "lazo: %s (%d processes)\n", text, job.Size())
}

type across struct {
	job Job
	by  exchange
	// Device IDs by rank; concatenated, they are the mesh.
	ids      [][]int
	compiles sync.Mutex
	// Concurrent programs would receive each other's messages.
	runs   sync.Mutex
	number atomic.Int64
}

type exchange interface {
	open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, ids [][]int, err error)
	compile(c *client, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error)
	close() error
}

var _, _ exchange = (*byHandlers)(nil), (*byPlugin)(nil)

func newAcross(library *pjrt.Plugin, plugin Plugin, o *options) (*across, error) {
	if o.job == nil || o.job.Size() == 1 {
		return nil, nil
	}
	var by exchange
	var err error
	if plugin.Kind == CPU {
		by, err = newByHandlers(library, plugin, o)
	} else {
		by, err = newByPlugin(plugin, o)
	}
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, o.job.Size())
	}
	return &across{job: o.job, by: by}, nil
}

func (a *across) open(library *pjrt.Plugin, plugin Plugin, options map[string]any) (made *pjrt.Client, err error) {
	if a == nil {
		return newClient(library, plugin, options, nil)
	}
	made, a.ids, err = a.by.open(library, plugin, options)
	if err != nil {
		return nil, during(err, "open %q across %d processes", plugin.Kind, a.job.Size())
	}
	return made, nil
}

func (a *across) own() int { return len(a.ids[0]) }

func (a *across) devices() int { return len(a.ids) * a.own() }

func (a *across) id(n compute.DeviceNum) (int, error) {
	if n < 0 || int(n) >= a.devices() {
		return 0, fmt.Errorf("xla: device %d: all processes have %d", n, a.devices())
	}
	return a.ids[int(n)/a.own()][int(n)%a.own()], nil
}

func (a *across) compile(c *client, name, text string, options pjrt.CompileOptions) (*pjrt.Executable, fromCache, error) {
	a.compiles.Lock()
	defer a.compiles.Unlock()
	defer a.job.Busy("compiling "+name, compileLimit)()
	if err := same(a.job, "compile "+name, text, keyOf(text, options)); err != nil {
		return nil, cacheOff, err
	}
	return a.by.compile(c, text, options)
}

const compileLimit = 30 * time.Minute

func same(job Job, what, text string, key programKey) error {
	equal, err := job.EachSame(what, int64(binary.LittleEndian.Uint64(key[:])))
	if err != nil || equal[0] {
		return err
	}
	return disagree(job, what, text)
}

func disagree(job Job, what, text string) error {
	zero, err := job.Broadcast([]byte(text))
	if err != nil {
		return err
	}
	if text != string(zero) {
		what += ", " + firstDifference(string(zero), text)
	}
	all, err := job.AllGather([]byte(what))
	if err != nil {
		return err
	}
	var list bytes.Buffer
	for rank, other := range all {
		if slices.ContainsFunc(all[:rank], func(said []byte) bool { return bytes.Equal(said, other) }) {
			continue
		}
		ranks := fmt.Sprint("rank ", rank)
		for also := rank + 1; also < len(all); also++ {
			if bytes.Equal(all[also], other) {
				ranks = strings.Replace(ranks, "rank ", "ranks ", 1) + fmt.Sprint(", ", also)
			}
		}
		fmt.Fprintf(&list, "\n\t%s: %s", ranks, other)
	}
	return fmt.Errorf("%w: their next operations differ:%s", joined.ErrDisagree, list.String())
}

func firstDifference(zero, own string) string {
	a, b := strings.Split(zero, "\n"), strings.Split(own, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			ours, theirs := partings(strings.TrimSpace(b[i]), strings.TrimSpace(a[i]))
			return fmt.Sprintf("line %d of the program is %s, that of rank 0 %s", i+1, ours, theirs)
		}
	}
	return fmt.Sprintf("the program has %d lines, that of rank 0 %d", len(b), len(a))
}

// Characters shown before the difference and in total.
const (
	beforeParting = 60
	atParting     = 200
)

func partings(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	from := max(0, same-beforeParting)
	quoted := func(r []rune) string {
		to := min(len(r), from+atParting)
		text := strconv.Quote(string(r[from:to]))
		if from > 0 {
			text = "…" + text
		}
		if to < len(r) {
			text += "…"
		}
		return text
	}
	return quoted(x), quoted(y)
}

// Alike is a value that must be equal in all processes of a run ([Program.Start]).
type Alike struct {
	What string // in messages: "the next batches"
	// Sums has a checksum per part, equally many in all processes.
	Sums []int64
	// Parts describes the parts in order, if a checksum differs.
	Parts func() []Part
	// Err is wrapped by the run's error, which names the ranks and parts that differ.
	Err error
}

// Part describes a part of an [Alike] in messages.
type Part struct {
	Name string // "field \"x\"", after "differs in"
	Is   string // this process's value: "1,000 examples"; may be ""
}

func (a *across) enter(p *Program, runs int, alike []Alike) (leave func(), err error) {
	a.runs.Lock()
	if err := a.sameRun(p, runs, alike); err != nil {
		a.runs.Unlock()
		return nil, err
	}
	return a.runs.Unlock, nil
}

func (a *across) sameRun(p *Program, runs int, alike []Alike) error {
	number := a.number.Add(1)
	key := fnv.New64a()
	fmt.Fprintln(key, p.name, runs, number)
	what := fmt.Sprintf("run %d of a program, %s, %d steps", number, p.name, runs)
	shown := what
	for _, x := range alike {
		shown += ", and of " + x.What
	}
	sums := []int64{int64(key.Sum64())}
	for _, x := range alike {
		of := fnv.New64a()
		_ = binary.Write(of, binary.LittleEndian, x.Sums) // never fails
		sums = append(sums, int64(of.Sum64()))
	}
	equal, err := a.job.EachSame(shown, sums...)
	switch {
	case err != nil:
		return err
	case !equal[0]:
		return disagree(a.job, what, "")
	}
	for i, x := range alike {
		if !equal[i+1] {
			return unlike(a.job, x)
		}
	}
	return nil
}

func unlike(job Job, x Alike) error {
	type part struct {
		Part
		Sum int64
	}
	own := make([]part, len(x.Sums))
	for i, named := range x.Parts() {
		own[i] = part{named, x.Sums[i]}
	}
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	all, err := job.AllGather(text)
	if err != nil {
		return err
	}
	ranks := make([][]part, len(all))
	for r := range all {
		if err := json.Unmarshal(all[r], &ranks[r]); err != nil || len(ranks[r]) != len(own) {
			return fmt.Errorf("%w: rank %d compares %d parts of it, this one %d (%v)", x.Err, r, len(ranks[r]), len(own), err)
		}
	}
	var said []string
	for i, zero := range ranks[0] {
		var others []string
		has := ""
		for r := range ranks {
			if other := ranks[r][i]; other.Sum != zero.Sum {
				others = append(others, fmt.Sprint(r))
				if has == "" && other.Is != "" {
					has = fmt.Sprintf(" (rank %d has %s, rank 0 %s)", r, other.Is, zero.Is)
				}
			}
		}
		switch {
		case len(others) == 1:
			said = append(said, fmt.Sprintf("rank %s differs from rank 0 in %s%s", others[0], zero.Name, has))
		case len(others) > 1:
			said = append(said, fmt.Sprintf("ranks %s differ from rank 0 in %s%s", strings.Join(others, ", "), zero.Name, has))
		}
	}
	return fmt.Errorf("%w: %s", x.Err, strings.Join(said, "; "))
}

func (a *across) close() error {
	if a == nil {
		return nil
	}
	return a.by.close()
}
